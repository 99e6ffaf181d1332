// pgx: all sections, over its own interface.
package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cortado.test/drivers/harness"
)

var ctx = context.Background()

func main() {
	harness.Run("github.com/jackc/pgx/v5", map[string]func(){
		"connect": connect, "types_text": typesText, "types_binary": typesBinary, "prepared": prepared,
		"batch": batch, "transactions": transactions, "errors": errorClasses, "cancel": cancel, "copy": copying,
		"cursors": cursors, "catalog": catalog,
	})
}

// open connects to the server of PGHOST, PGPORT, PGUSER and PGDATABASE.
func open() *pgx.Conn {
	return harness.Must(pgx.Connect(ctx, "connect_timeout=10"))
}

func exec(conn *pgx.Conn, statement string, values ...any) pgconn.CommandTag {
	return harness.Must(conn.Exec(ctx, statement, values...))
}

// one returns the only value of a query.
func one[T any](conn *pgx.Conn, statement string, values ...any) (value T) {
	harness.Check(conn.QueryRow(ctx, statement, values...).Scan(&value))
	return
}

// all returns the values of a query's only column.
func all[T any](conn *pgx.Conn, statement string, values ...any) []T {
	rows := harness.Must(conn.Query(ctx, statement, values...))
	return harness.Must(pgx.CollectRows(rows, pgx.RowTo[T]))
}

func state(err error) string {
	var failure *pgconn.PgError
	if errors.As(err, &failure) {
		return failure.Code
	}
	return ""
}
