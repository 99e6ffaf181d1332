package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"cortado.test/drivers/harness"
)

// Transactions; a transaction inside of one is a savepoint.
func transactions() {
	conn := open()
	defer conn.Close(ctx)
	exec(conn, "DROP TABLE IF EXISTS pgx_tx")
	exec(conn, "CREATE TABLE pgx_tx (id int PRIMARY KEY)")
	harness.Check(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		exec(conn, "INSERT INTO pgx_tx VALUES (1)")
		inner := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			exec(conn, "INSERT INTO pgx_tx VALUES (2)")
			_, err := tx.Exec(ctx, "INSERT INTO pgx_tx VALUES (1)")
			return err
		})
		harness.State(inner, state, "23505")
		exec(conn, "INSERT INTO pgx_tx VALUES (4)")
		return nil
	}))
	harness.Equal(all[int](conn, "SELECT id FROM pgx_tx ORDER BY id"), []int{1, 4})
	tx := harness.Must(conn.Begin(ctx))
	exec(conn, "DELETE FROM pgx_tx")
	harness.Equal(conn.PgConn().TxStatus(), byte('T'))
	_, err := conn.Exec(ctx, "SELECT 1 / 0")
	harness.State(err, state, "22012")
	_, err = conn.Exec(ctx, "SELECT 1")
	harness.State(err, state, "25P02")
	harness.Equal(conn.PgConn().TxStatus(), byte('E'))
	harness.Equal(errors.Is(tx.Commit(ctx), pgx.ErrTxCommitRollback), true)
	harness.Equal(one[int](conn, "SELECT count(*) FROM pgx_tx"), 2)
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	harness.Check(pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		harness.Equal(one[string](conn, "SHOW transaction_isolation"), "repeatable read")
		return nil
	}))
	exec(conn, "DROP TABLE pgx_tx")
}

func errorClasses() {
	conn, other := open(), open()
	defer conn.Close(ctx)
	defer other.Close(ctx)
	exec(conn, harness.FailuresTable, pgx.QueryExecModeSimpleProtocol)
	for _, failing := range harness.Failures {
		_, err := conn.Exec(ctx, failing[0])
		harness.State(err, state, failing[1])
	}
	var failure *pgconn.PgError
	_, err := conn.Exec(ctx, "INSERT INTO failures VALUES ($1, $2)", 1, 1)
	harness.Equal(errors.As(err, &failure), true)
	harness.Equal([]string{failure.SchemaName, failure.TableName, failure.ConstraintName, failure.Detail},
		[]string{"public", "failures", "failures_pkey", "Key (id)=(1) already exists."})
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		harness.Equal(one[int](conn, "SELECT n FROM failures"), 1)
		exec(other, "UPDATE failures SET n = n + 1")
		_, err := tx.Exec(ctx, "UPDATE failures SET n = n + 1")
		return err
	})
	harness.State(err, state, "40001")
}

// With this handler a context that ends asks the server to cancel, and the connection lives on. Without, it is closed.
func cancel() {
	config := harness.Must(pgx.ParseConfig(""))
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 10 * time.Second}
	}
	conn := harness.Must(pgx.ConnectConfig(ctx, config))
	defer conn.Close(ctx)
	short, end := context.WithTimeout(ctx, 300*time.Millisecond)
	defer end()
	_, err := conn.Exec(short, "SELECT pg_sleep(20)")
	harness.State(err, state, "57014")
	harness.Equal(one[int](conn, "SELECT 1"), 1)
	exec(conn, "SET statement_timeout TO '200ms'")
	_, err = conn.Exec(ctx, "SELECT pg_sleep(20)")
	harness.State(err, state, "57014")
}
