package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lib/pq"

	"cortado.test/drivers/harness"
)

func transactions() {
	db := open("")
	defer db.Close()
	exec(db, "DROP TABLE IF EXISTS libpq_tx; CREATE TABLE libpq_tx (id int PRIMARY KEY)")
	tx := harness.Must(db.Begin())
	exec(tx, "INSERT INTO libpq_tx VALUES ($1)", 1)
	exec(tx, "SAVEPOINT a")
	exec(tx, "INSERT INTO libpq_tx VALUES (2)")
	_, err := tx.Exec("INSERT INTO libpq_tx VALUES (1)")
	harness.State(err, state, "23505")
	_, err = tx.Exec("SELECT 1")
	harness.State(err, state, "25P02")
	exec(tx, "ROLLBACK TO a; RELEASE a")
	exec(tx, "INSERT INTO libpq_tx VALUES (4)")
	harness.Check(tx.Commit())
	tx = harness.Must(db.Begin())
	exec(tx, "DELETE FROM libpq_tx")
	harness.Check(tx.Rollback())
	harness.Equal(all[int](db, "SELECT id FROM libpq_tx ORDER BY id"), []int{1, 4})
	options := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	tx = harness.Must(db.BeginTx(context.Background(), options))
	harness.Equal(one[string](tx, "SHOW transaction_isolation"), "repeatable read")
	_, err = tx.Exec("DELETE FROM libpq_tx")
	harness.State(err, state, "25006")
	harness.Check(tx.Rollback())
	exec(db, "DROP TABLE libpq_tx")
}

func errorClasses() {
	db, other := open(""), open("")
	defer db.Close()
	defer other.Close()
	exec(db, harness.FailuresTable)
	for _, failing := range harness.Failures {
		_, err := db.Exec(failing[0])
		harness.State(err, state, failing[1])
	}
	var failure *pq.Error
	_, err := db.Exec("INSERT INTO failures VALUES ($1, $2)", 1, 1)
	harness.Equal(errors.As(err, &failure), true)
	harness.Equal(failure.Code.Class().Name(), "integrity_constraint_violation")
	harness.Equal([]string{failure.Table, failure.Constraint, failure.Detail},
		[]string{"failures", "failures_pkey", "Key (id)=(1) already exists."})
	tx := harness.Must(db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead}))
	harness.Equal(one[int](tx, "SELECT n FROM failures"), 1)
	exec(other, "UPDATE failures SET n = n + 1")
	_, err = tx.Exec("UPDATE failures SET n = n + 1")
	harness.State(err, state, "40001")
	harness.Check(tx.Rollback())
}

// A context that ends sends a cancel.
func cancel() {
	db := open("")
	defer db.Close()
	short, end := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer end()
	started := time.Now()
	_, err := db.ExecContext(short, "SELECT pg_sleep(20)")
	harness.Equal(state(err) == "57014" || errors.Is(err, context.DeadlineExceeded), true)
	harness.Equal(time.Since(started) < 10*time.Second, true)
	exec(db, "SET statement_timeout TO '200ms'")
	_, err = db.Exec("SELECT pg_sleep($1)", 20)
	harness.State(err, state, "57014")
	harness.Equal(one[int](db, "SELECT 1"), 1)
}
