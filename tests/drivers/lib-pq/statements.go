package main

import (
	"cortado.test/drivers/harness"
)

// Named statements, through a change of the table.
func prepared() {
	db := open("")
	defer db.Close()
	plus := harness.Must(db.Prepare("SELECT $1::int + 1"))
	for n := range 5 {
		var sum int
		harness.Check(plus.QueryRow(n).Scan(&sum))
		harness.Equal(sum, n+1)
	}
	harness.Check(plus.Close())
	exec(db, "DROP TABLE IF EXISTS libpq_prepared")
	exec(db, "CREATE TABLE libpq_prepared (id int PRIMARY KEY, n int)")
	insert := harness.Must(db.Prepare("INSERT INTO libpq_prepared VALUES ($1, $2)"))
	for n := range 20 {
		harness.Must(insert.Exec(n, nil))
	}
	_, err := insert.Exec(1, 1)
	harness.State(err, state, "23505")
	exec(db, "ALTER TABLE libpq_prepared ADD COLUMN more text")
	harness.Must(insert.Exec(100, 1))
	harness.Check(insert.Close())
	harness.Equal(one[int](db, "SELECT count(*) FROM libpq_prepared"), 21)
	exec(db, "DROP TABLE libpq_prepared")
}

// The driver has no pipelines: a batch is a query of several statements, with several results.
func batch() {
	db := open("")
	defer db.Close()
	rows := harness.Must(db.Query("SELECT 1; SELECT 'two', 2; SELECT 3 WHERE false"))
	defer rows.Close()
	columns := []int{}
	for more := true; more; more = rows.NextResultSet() {
		columns = append(columns, len(harness.Must(rows.Columns())))
		for rows.Next() {
		}
	}
	harness.Check(rows.Err())
	harness.Equal(columns, []int{1, 2, 1})
	harness.Check(rows.Close())
	exec(db, "DROP TABLE IF EXISTS libpq_batch; CREATE TABLE libpq_batch (id int PRIMARY KEY)")
	_, err := db.Exec("INSERT INTO libpq_batch VALUES (1); INSERT INTO libpq_batch VALUES (2); SELECT 1 / 0")
	harness.State(err, state, "22012")
	harness.Equal(one[int](db, "SELECT count(*) FROM libpq_batch"), 0)
	exec(db, "INSERT INTO libpq_batch SELECT n FROM generate_series(1, 1000) n; UPDATE libpq_batch SET id = -id")
	harness.Equal(one[int](db, "SELECT min(id) FROM libpq_batch"), -1000)
	exec(db, "DROP TABLE libpq_batch")
}

// Cursors of the server are SQL.
func cursors() {
	db := open("")
	defer db.Close()
	tx := harness.Must(db.Begin())
	exec(tx, "DECLARE named SCROLL CURSOR FOR SELECT n FROM generate_series(1, 20) n")
	harness.Equal(all[int](tx, "FETCH 3 FROM named"), []int{1, 2, 3})
	harness.Equal(exec(tx, "MOVE FORWARD 5 IN named"), int64(5))
	harness.Equal(all[int](tx, "FETCH BACKWARD 2 FROM named"), []int{7, 6})
	exec(tx, "CLOSE named")
	_, err := tx.Exec("FETCH 1 FROM named")
	harness.State(err, state, "34000")
	harness.Check(tx.Rollback())
}
