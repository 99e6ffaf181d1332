package main

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/lib/pq"

	"cortado.test/drivers/harness"
)

// sample is a type of the server with values, and what a scan into `any` returns where that differs.
type sample struct {
	name     string
	values   []any
	expected []any
}

var samples = []sample{
	{"bool", []any{true, false}, nil},
	{"int2", []any{int64(-32768), int64(32767)}, nil},
	{"int4", []any{int64(math.MinInt32), int64(math.MaxInt32)}, nil},
	{"int8", []any{int64(math.MinInt64), int64(math.MaxInt64)}, nil},
	{"float4", []any{1.5}, nil},
	{"float8", []any{0.1, math.MaxFloat64, 5e-324, math.Inf(1), math.Inf(-1)}, nil},
	{"numeric", []any{"0", "12345678901234567890.123456789012345678", "-0.00000001", "NaN", "-Infinity"}, nil},
	{"text", []any{"", "плов ☕ 𝄞", "it's \"a\" \\ tab\t\n", strings.Repeat("x", 100_000)}, nil},
	{"varchar(20)", []any{"", "twenty characters ok"}, nil},
	{"char(5)", []any{"ab"}, []any{"ab   "}},
	{"bytea", []any{[]byte{}, []byte{0, 255, 92, 39}}, []any{[]byte{}, []byte{0, 255, 92, 39}}},
	{"uuid", []any{"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, nil},
	{"date", []any{time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), time.Date(-43, 3, 15, 0, 0, 0, 0, time.UTC),
		"infinity"}, nil},
	{"time", []any{"23:59:59.999999"}, []any{time.Date(0, 1, 1, 23, 59, 59, 999_999_000, time.UTC)}},
	{"timestamp", []any{time.Date(2024, 2, 29, 12, 30, 0, 1000, time.UTC), "-infinity"}, nil},
	{"timestamptz", []any{time.Date(2024, 2, 29, 12, 30, 0, 0, time.FixedZone("", 19_800)), "infinity"}, nil},
	{"interval", []any{"1 year 2 mons -3 days +04:05:06.789"}, nil},
	{"json", []any{`{"a": [1, null]}`}, nil},
	{"jsonb", []any{`{"b":1, "a":  "ключ"}`}, []any{`{"a": "ключ", "b": 1}`}},
	{"int8[]", []any{pq.Array([]int64{}), pq.Array([]int64{1, math.MinInt64})}, []any{"{}", "{1,-9223372036854775808}"}},
	{"text[]", []any{pq.Array([]string{"a,b", `quo"te`, `back\slash`, "", "NULL"})},
		[]any{`{"a,b","quo\"te","back\\slash","","NULL"}`}},
	{"numeric[]", []any{"{1.10,NULL}"}, nil},
	{"float8[]", []any{pq.Array([]float64{0.1, 5e-324})}, []any{"{0.1,5e-324}"}},
	{"bool[]", []any{pq.Array([]bool{true, false})}, []any{"{t,f}"}},
	{"bytea[]", []any{pq.Array([][]byte{{0, 255}, {}})}, []any{`{"\\x00ff","\\x"}`}},
}

// Text parameters and, for what the driver knows no binary form of, text results.
func typesText() { roundTrip("libpq_text", "") }

// Parameters in binary where they are bytes, results in binary for integers, bytea and uuid.
func typesBinary() { roundTrip("libpq_binary", "binary_parameters=yes") }

func roundTrip(table, options string) {
	db := open("timezone=UTC " + options)
	defer db.Close()
	var columns strings.Builder
	for i, sample := range samples {
		fmt.Fprintf(&columns, ", c%d %s", i, sample.name)
	}
	exec(db, "DROP TABLE IF EXISTS "+table)
	exec(db, fmt.Sprintf("CREATE TABLE %s (id int PRIMARY KEY%s)", table, columns.String()))
	key := 0
	for i, sample := range samples {
		for at, value := range append(sample.values[:len(sample.values):len(sample.values)], nil) {
			key++
			exec(db, fmt.Sprintf("INSERT INTO %s (id, c%d) VALUES ($1, $2)", table, i), key, value)
			expected := value
			if at < len(sample.expected) {
				expected = sample.expected[at]
			}
			stored := plain(one[any](db, fmt.Sprintf("SELECT c%d FROM %s WHERE id = $1", i, table), key))
			if !reflect.DeepEqual(stored, plain(expected)) {
				harness.Fail("%s: %#v instead of %#v", sample.name, stored, plain(expected))
			}
		}
	}
	exec(db, "DROP TABLE "+table)
}

// plain makes values comparable: bytes as text, times as instants.
func plain(value any) any {
	switch value := value.(type) {
	case []byte:
		return string(value)
	case time.Time:
		return value.UnixMicro()
	}
	return value
}
