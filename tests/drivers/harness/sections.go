// Package harness runs the sections of a Go driver and reports each in one line; see tests/drivers/README.md.
package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
)

// Names are the sections, in order. Every driver has all of them.
var Names = []string{"connect", "types_text", "types_binary", "prepared", "batch", "transactions", "errors", "cancel",
	"copy", "cursors", "catalog"}

type failure struct{ text string }
type none struct{ reason string }

// Run runs the sections, and exits with 1 if one failed. The version is that of the module in go.mod.
func Run(module string, sections map[string]func()) {
	fmt.Println("version", version(module))
	failed := false
	for _, name := range Names {
		failed = !passes(name, sections[name]) || failed
	}
	if failed {
		os.Exit(1)
	}
}

func version(module string) string {
	build, _ := debug.ReadBuildInfo()
	for _, dependency := range build.Deps {
		if dependency.Path == module {
			return strings.TrimPrefix(dependency.Version, "v")
		}
	}
	return "unknown"
}

func passes(name string, section func()) (passed bool) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
			fmt.Println("ok", name)
			passed = true
		case none:
			fmt.Println("none", name, reason.reason)
			passed = true
		case failure:
			fmt.Println("FAILED", name, reason.text)
		default:
			fmt.Println("FAILED", name, fmt.Sprint(reason))
		}
	}()
	section()
	return
}

// None ends a section that the driver does not have, and says why.
func None(reason string) { panic(none{reason}) }

// Fail ends the section with a text and the line of the test.
func Fail(format string, values ...any) {
	place := ""
	for depth := 1; depth < 12; depth++ {
		_, file, line, _ := runtime.Caller(depth)
		if base := filepath.Base(file); base != "sections.go" && base != "main.go" {
			place = fmt.Sprintf("%s:%d ", filepath.Base(file), line)
			break
		}
	}
	text := fmt.Sprintf(format, values...)
	panic(failure{place + strings.Join(strings.Fields(text), " ")})
}

// Check ends the section if there is an error.
func Check(err error) {
	if err != nil {
		Fail("%v", err)
	}
}

// Must returns the value, or ends the section.
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Equal ends the section if the values differ.
func Equal(actual, expected any) {
	if !reflect.DeepEqual(actual, expected) {
		Fail("%#v instead of %#v", actual, expected)
	}
}

// State ends the section unless the error has the SQLSTATE. `of` takes it out of the driver's error.
func State(err error, of func(error) string, expected string) {
	if err == nil {
		Fail("no error instead of %s", expected)
	}
	if state := of(err); state != expected {
		Fail("%s instead of %s: %v", state, expected, err)
	}
}

// Failures are statements that fail, with their SQLSTATEs. The table of FailuresTable has the row (1, 1).
var Failures = [][2]string{
	{"INSERT INTO failures VALUES (1, 1)", "23505"},
	{"INSERT INTO failures VALUES (2, NULL)", "23502"},
	{"INSERT INTO failures VALUES (2, -1)", "23514"},
	{"SELECT * FROM missing", "42P01"},
	{"SELECT missing FROM failures", "42703"},
	{"SELECT 1 / 0", "22012"},
	{"SELEC 1", "42601"},
	{"SELECT 'x'::int", "22P02"},
	{"SELECT 2147483647 + 1", "22003"},
	{"CREATE TABLE failures (id int)", "42P07"},
}

// FailuresTable makes the table of Failures.
const FailuresTable = `
	DROP TABLE IF EXISTS failures;
	CREATE TABLE failures (id int PRIMARY KEY, n int NOT NULL CHECK (n > 0));
	INSERT INTO failures VALUES (1, 1)`

// CatalogTable makes a table with what a catalog tells about columns, keys and indexes.
const CatalogTable = `
	DROP TABLE IF EXISTS described;
	CREATE TABLE described (id serial PRIMARY KEY, name varchar(30) NOT NULL DEFAULT 'none', price numeric(10, 2));
	CREATE UNIQUE INDEX described_name ON described (name)`

// Columns lists name, type, NOT NULL and default of the columns of CatalogTable, one text for each.
const Columns = `
	SELECT concat_ws('|', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
		pg_get_expr(d.adbin, d.adrelid))
	FROM pg_catalog.pg_attribute a
	LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
	WHERE a.attrelid = 'described'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

// ExpectedColumns is the result of Columns.
var ExpectedColumns = []string{
	"id|integer|t|nextval('described_id_seq'::regclass)",
	"name|character varying(30)|t|'none'::character varying",
	"price|numeric(10,2)|f",
}
