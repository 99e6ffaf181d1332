package main

import (
	"github.com/lib/pq"

	"cortado.test/drivers/harness"
)

// The driver has COPY FROM in text, within a transaction, and no COPY TO.
func copying() {
	db := open("")
	defer db.Close()
	exec(db, "DROP TABLE IF EXISTS libpq_copy; CREATE TABLE libpq_copy (id int PRIMARY KEY, name text, data bytea)")
	tx := harness.Must(db.Begin())
	in := harness.Must(tx.Prepare(pq.CopyIn("libpq_copy", "id", "name", "data")))
	for n := range 1000 {
		harness.Must(in.Exec(n, "tab\t, line\n, back\\slash", []byte{0, 255}))
	}
	harness.Must(in.Exec(1000, nil, nil))
	harness.Equal(harness.Must(harness.Must(in.Exec()).RowsAffected()), int64(1001))
	harness.Check(in.Close())
	harness.Check(tx.Commit())
	harness.Equal(one[int](db, "SELECT count(*) FROM libpq_copy WHERE name = $1 AND data = $2",
		"tab\t, line\n, back\\slash", []byte{0, 255}), 1000)
	tx = harness.Must(db.Begin())
	in = harness.Must(tx.Prepare(pq.CopyIn("libpq_copy", "id")))
	harness.Must(in.Exec("word"))
	_, err := in.Exec()
	harness.State(err, state, "22P02")
	harness.Check(tx.Rollback())
	exec(db, "DROP TABLE libpq_copy")
}
