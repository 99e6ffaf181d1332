package main

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"cortado.test/drivers/harness"
)

// Connections, their settings, notices and pools.
func connect() {
	config := harness.Must(pgx.ParseConfig("application_name=drivers statement_timeout=70s"))
	var notices []string
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { notices = append(notices, notice.Code) }
	conn := harness.Must(pgx.ConnectConfig(ctx, config))
	harness.Equal(one[string](conn, "SHOW application_name"), "drivers")
	harness.Equal(one[string](conn, "SHOW statement_timeout"), "70s")
	harness.Equal(one[string](conn, "SELECT $1::text || 'плов ☕'", "𝄞"), "𝄞плов ☕")
	harness.Equal(conn.PgConn().ParameterStatus("server_encoding"), "UTF8")
	exec(conn, "DROP TABLE IF EXISTS missing")
	harness.Equal(notices, []string{"00000"})
	harness.Check(conn.Ping(ctx))
	harness.Check(conn.Close(ctx))

	pool := harness.Must(pgxpool.New(ctx, "pool_max_conns=2"))
	for range 5 {
		var n int
		harness.Check(pool.QueryRow(ctx, "SELECT 1").Scan(&n))
		harness.Equal(n, 1)
	}
	pool.Close()

	_, err := pgx.Connect(ctx, "dbname=missing")
	harness.State(err, state, "3D000")
}
