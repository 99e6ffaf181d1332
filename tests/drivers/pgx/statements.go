package main

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"cortado.test/drivers/harness"
)

// Statements by name, and the cache of the driver, through a change of the table.
func prepared() {
	conn := open()
	defer conn.Close(ctx)
	plus := harness.Must(conn.Prepare(ctx, "plus", "SELECT $1::int + 1, $2::text"))
	harness.Equal(plus.ParamOIDs, []uint32{23, 25})
	for n := range 5 {
		harness.Equal(one[int](conn, "SELECT $1::int + 1", n), n+1)
	}
	rows := harness.Must(conn.Query(ctx, "plus", 41, "x"))
	row := harness.Must(pgx.CollectExactlyOneRow(rows, pgx.RowToMap))
	harness.Equal(row, map[string]any{"?column?": int32(42), "text": "x"})
	harness.Check(conn.Deallocate(ctx, "plus"))
	exec(conn, "DROP TABLE IF EXISTS pgx_prepared")
	exec(conn, "CREATE TABLE pgx_prepared (id int PRIMARY KEY)")
	exec(conn, "INSERT INTO pgx_prepared VALUES ($1)", 1)
	exec(conn, "ALTER TABLE pgx_prepared ADD COLUMN n int DEFAULT 7")
	harness.Equal(one[int](conn, "SELECT n FROM pgx_prepared WHERE id = $1", 1), 7)
	exec(conn, "DROP TABLE pgx_prepared")
	harness.Check(conn.DeallocateAll(ctx))
	harness.Equal(one[int](conn, "SELECT $1::int + 1", 1), 2)
}

// A batch is one pipeline: an error undoes all of it.
func batch() {
	conn := open()
	defer conn.Close(ctx)
	exec(conn, "DROP TABLE IF EXISTS pgx_batch")
	exec(conn, "CREATE TABLE pgx_batch (id int PRIMARY KEY, name text)")
	queue := &pgx.Batch{}
	for n := range 300 {
		queue.Queue("INSERT INTO pgx_batch VALUES ($1, $2)", n, fmt.Sprint("name ", n))
	}
	total := 0
	queue.Queue("SELECT count(*) FROM pgx_batch").QueryRow(func(row pgx.Row) error { return row.Scan(&total) })
	harness.Check(conn.SendBatch(ctx, queue).Close())
	harness.Equal(total, 300)

	failing := &pgx.Batch{}
	failing.Queue("DELETE FROM pgx_batch")
	failing.Queue("SELECT 1 / $1::int", 0)
	harness.State(conn.SendBatch(ctx, failing).Close(), state, "22012")
	harness.Equal(one[int](conn, "SELECT count(*) FROM pgx_batch"), 300)
	exec(conn, "DROP TABLE pgx_batch")
}

// Rows arrive while they are read; cursors of the server are SQL.
func cursors() {
	conn := open()
	defer conn.Close(ctx)
	rows := harness.Must(conn.Query(ctx, "SELECT n FROM generate_series(1, 100000) n"))
	for n := 1; n <= 10; n++ {
		harness.Equal(rows.Next(), true)
	}
	rows.Close()
	harness.Check(rows.Err())
	harness.Check(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		exec(conn, "DECLARE named SCROLL CURSOR FOR SELECT n FROM generate_series(1, 20) n")
		harness.Equal(all[int](conn, "FETCH 3 FROM named"), []int{1, 2, 3})
		harness.Equal(exec(conn, "MOVE FORWARD 5 IN named").RowsAffected(), int64(5))
		harness.Equal(all[int](conn, "FETCH ABSOLUTE 2 FROM named"), []int{2})
		exec(conn, "CLOSE named")
		return nil
	}))
}
