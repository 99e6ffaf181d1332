package main

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"cortado.test/drivers/harness"
)

// sample is a type of the server with values of Go, and the texts of the server where they show more.
type sample struct {
	name   string
	values []any
	texts  []string
}

func numeric(digits string, exponent int32) pgtype.Numeric {
	value, _ := new(big.Int).SetString(digits, 10)
	return pgtype.Numeric{Int: value, Exp: exponent, Valid: true}
}

var samples = []sample{
	{"bool", []any{true, false}, []string{"true", "false"}},
	{"int2", []any{int16(math.MinInt16), int16(math.MaxInt16)}, nil},
	{"int4", []any{int32(math.MinInt32), int32(math.MaxInt32)}, nil},
	{"int8", []any{int64(math.MinInt64), int64(math.MaxInt64)}, nil},
	{"float4", []any{float32(1.5), float32(math.Inf(-1)), math.SmallestNonzeroFloat32}, nil},
	{"float8", []any{0.1, math.MaxFloat64, 5e-324, math.Inf(1)},
		[]string{"0.1", "1.7976931348623157e+308", "5e-324", "Infinity"}},
	{"numeric", []any{numeric("0", 0), numeric("12345678901234567890123456789012345678", -18), numeric("-1", -8),
		pgtype.Numeric{NaN: true, Valid: true}, pgtype.Numeric{InfinityModifier: pgtype.NegativeInfinity, Valid: true}},
		[]string{"0", "12345678901234567890.123456789012345678", "-0.00000001", "NaN", "-Infinity"}},
	{"text", []any{"", "плов ☕ 𝄞", "it's \"a\" \\ tab\t\n", strings.Repeat("x", 100_000)}, nil},
	{"varchar(20)", []any{"", "twenty characters ok"}, nil},
	{"char(5)", []any{"ab   "}, nil},
	{"bytea", []any{[]byte{}, []byte{0, 255, 92, 39}}, []string{`\x`, `\x00ff5c27`}},
	{"uuid", []any{[16]byte{0xa0, 0xee, 15: 0x11}}, []string{"a0ee0000-0000-0000-0000-000000000011"}},
	{"date", []any{time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), pgtype.Infinity, pgtype.NegativeInfinity,
		time.Date(-43, 3, 15, 0, 0, 0, 0, time.UTC)}, []string{"2024-02-29", "infinity", "-infinity", "0044-03-15 BC"}},
	{"time", []any{pgtype.Time{Microseconds: 86_399_999_999, Valid: true}, pgtype.Time{Microseconds: 86_400_000_000,
		Valid: true}}, []string{"23:59:59.999999", "24:00:00"}},
	{"timestamp", []any{time.Date(2024, 2, 29, 12, 30, 0, 1000, time.UTC), pgtype.Infinity},
		[]string{"2024-02-29 12:30:00.000001", "infinity"}},
	{"timestamptz", []any{time.Date(2024, 2, 29, 12, 30, 0, 0, time.FixedZone("", 19_800)), pgtype.NegativeInfinity},
		[]string{"2024-02-29 07:00:00+00", "-infinity"}},
	{"interval", []any{pgtype.Interval{Months: 14, Days: -3, Microseconds: 14_706_789_000, Valid: true}},
		[]string{"1 year 2 mons -3 days +04:05:06.789"}},
	{"jsonb", []any{map[string]any{"a": []any{1.0, nil, true}, "ключ": "\"'\\"}}, nil},
	{"json", []any{map[string]any{"a": []any{1.0, nil, true}}, []any{}}, nil},
	{"int4[]", []any{[]any{}, []any{int32(1), nil, int32(math.MinInt32)}}, []string{"{}", "{1,NULL,-2147483648}"}},
	{"text[]", []any{[]any{"a,b", `quo"te`, `back\slash`, "", "NULL", nil}},
		[]string{`{"a,b","quo\"te","back\\slash","","NULL",NULL}`}},
	{"numeric[]", []any{[]any{numeric("110", -2), nil}}, []string{"{1.10,NULL}"}},
	{"float8[]", []any{[]any{0.1, math.Inf(1)}}, []string{"{0.1,Infinity}"}},
	{"bool[]", []any{[]any{true, nil}}, []string{"{t,NULL}"}},
	{"bytea[]", []any{[]any{[]byte{0, 255}, []byte{}}}, []string{`{"\\x00ff","\\x"}`}},
	{"uuid[]", []any{[]any{[16]byte{1}}}, []string{"{01000000-0000-0000-0000-000000000000}"}},
	{"date[]", []any{[]any{time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), nil}}, []string{"{2024-02-29,NULL}"}},
}

// Text results come from QueryExecModeExec with text asked for each column; parameters are text in the simple protocol.
func typesText() {
	roundTrip("pgx_text", func(conn *pgx.Conn, column, table string, key int) any {
		formats := pgx.QueryResultFormats{pgx.TextFormatCode}
		return read(conn, formats, fmt.Sprintf("SELECT %s FROM %s WHERE id = $1", column, table), key)
	}, pgx.QueryExecModeDescribeExec)
	conn := open()
	defer conn.Close(ctx)
	simple := one[string](conn, "SELECT concat_ws('|', $1::int, $2::text, $3::bytea, $4::bool, $5::float8)",
		pgx.QueryExecModeSimpleProtocol, -1, `a'b\c`, []byte{0, 255}, true, -0.5)
	harness.Equal(simple, `-1|a'b\c|\x00ff|t|-0.5`)
}

// Binary in both ways is the default.
func typesBinary() {
	roundTrip("pgx_binary", func(conn *pgx.Conn, column, table string, key int) any {
		formats := pgx.QueryResultFormats{pgx.BinaryFormatCode}
		return read(conn, formats, fmt.Sprintf("SELECT %s FROM %s WHERE id = $1", column, table), key)
	}, pgx.QueryExecModeCacheStatement)
}

func read(conn *pgx.Conn, values ...any) any {
	rows := harness.Must(conn.Query(ctx, values[1].(string), values[0], values[2]))
	values = harness.Must(pgx.CollectExactlyOneRow(rows, pgx.CollectableRow.Values))
	return values[0]
}

func roundTrip(table string, stored func(*pgx.Conn, string, string, int) any, mode pgx.QueryExecMode) {
	conn := open()
	defer conn.Close(ctx)
	var columns strings.Builder
	for i, sample := range samples {
		fmt.Fprintf(&columns, ", c%d %s", i, sample.name)
	}
	exec(conn, "SET TimeZone TO 'UTC'")
	exec(conn, "DROP TABLE IF EXISTS "+table)
	exec(conn, fmt.Sprintf("CREATE TABLE %s (id int PRIMARY KEY%s)", table, columns.String()))
	key := 0
	for i, sample := range samples {
		column := fmt.Sprintf("c%d", i)
		for at, value := range append(sample.values[:len(sample.values):len(sample.values)], nil) {
			key++
			exec(conn, fmt.Sprintf("INSERT INTO %s (id, %s) VALUES ($1, $2)", table, column), mode, key, value)
			actual := plain(stored(conn, column, table, key))
			if !reflect.DeepEqual(actual, plain(value)) {
				harness.Fail("%s: %#v instead of %#v", sample.name, actual, plain(value))
			}
			if at < len(sample.texts) {
				text := one[string](conn, fmt.Sprintf("SELECT %s::text FROM %s WHERE id = $1", column, table), key)
				harness.Equal(text, sample.texts[at])
			}
		}
	}
	exec(conn, "DROP TABLE "+table)
}

// plain makes values comparable: times as instants, numerics as text, 64-bit constants as the column's type.
func plain(value any) any {
	switch value := value.(type) {
	case time.Time:
		return value.UnixMicro()
	case float64:
		if value == math.SmallestNonzeroFloat32 {
			return float32(value)
		}
	case pgtype.Numeric:
		return harness.Must(value.Value())
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = plain(item)
		}
		return items
	}
	return value
}
