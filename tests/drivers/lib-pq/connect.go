package main

import (
	"database/sql"

	"github.com/lib/pq"

	"cortado.test/drivers/harness"
)

// Connections, their settings and notices, the ping.
func connect() {
	db := open("application_name=drivers statement_timeout=70s")
	defer db.Close()
	harness.Check(db.Ping())
	harness.Equal(one[string](db, "SHOW application_name"), "drivers")
	harness.Equal(one[string](db, "SHOW statement_timeout"), "70s")
	harness.Equal(one[string](db, "SELECT $1::text || 'плов ☕'", "𝄞"), "𝄞плов ☕")

	var notices []string
	connector := harness.Must(pq.NewConnector("sslmode=disable"))
	noticing := sql.OpenDB(pq.ConnectorWithNoticeHandler(connector, func(notice *pq.Error) {
		notices = append(notices, string(notice.Code))
	}))
	defer noticing.Close()
	exec(noticing, "DROP TABLE IF EXISTS missing")
	harness.Equal(notices, []string{"00000"})

	missing := open("dbname=missing")
	defer missing.Close()
	harness.State(missing.Ping(), state, "3D000")
}
