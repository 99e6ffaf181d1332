// lib/pq: all sections, over database/sql.
package main

import (
	"database/sql"
	"errors"

	"github.com/lib/pq"

	"cortado.test/drivers/harness"
)

func main() {
	harness.Run("github.com/lib/pq", map[string]func(){
		"connect": connect, "types_text": typesText, "types_binary": typesBinary, "prepared": prepared,
		"batch": batch, "transactions": transactions, "errors": errorClasses, "cancel": cancel, "copy": copying,
		"cursors": cursors, "catalog": catalog,
	})
}

// open returns a pool of one connection to the server of PGHOST, PGPORT, PGUSER and PGDATABASE.
func open(options string) *sql.DB {
	db := harness.Must(sql.Open("postgres", "sslmode=disable connect_timeout=10 "+options))
	db.SetMaxOpenConns(1)
	return db
}

// runner is a pool or a transaction.
type runner interface {
	Exec(string, ...any) (sql.Result, error)
	Query(string, ...any) (*sql.Rows, error)
	QueryRow(string, ...any) *sql.Row
}

func exec(db runner, statement string, values ...any) int64 {
	return harness.Must(harness.Must(db.Exec(statement, values...)).RowsAffected())
}

// one returns the only value of a query.
func one[T any](db runner, statement string, values ...any) (value T) {
	harness.Check(db.QueryRow(statement, values...).Scan(&value))
	return
}

// all returns the values of a query's only column.
func all[T any](db runner, statement string, values ...any) (found []T) {
	rows := harness.Must(db.Query(statement, values...))
	defer rows.Close()
	for rows.Next() {
		var value T
		harness.Check(rows.Scan(&value))
		found = append(found, value)
	}
	harness.Check(rows.Err())
	return
}

func state(err error) string {
	var failure *pq.Error
	if errors.As(err, &failure) {
		return string(failure.Code)
	}
	return ""
}
