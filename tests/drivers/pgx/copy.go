package main

import (
	"bytes"
	"strings"

	"github.com/jackc/pgx/v5"

	"cortado.test/drivers/harness"
)

// CopyFrom is binary; COPY of any format goes through the connection below.
func copying() {
	conn := open()
	defer conn.Close(ctx)
	exec(conn, "DROP TABLE IF EXISTS pgx_copy")
	exec(conn, "CREATE TABLE pgx_copy (id int PRIMARY KEY, name text, price numeric, at timestamptz)")
	rows := [][]any{{1, "plain", numeric("150", -2), nil}, {2, "tab\t, line\n", nil, nil}, {3, "", nil, nil}}
	columns := []string{"id", "name", "price", "at"}
	copied := harness.Must(conn.CopyFrom(ctx, pgx.Identifier{"pgx_copy"}, columns, pgx.CopyFromRows(rows)))
	harness.Equal(copied, int64(3))
	var out bytes.Buffer
	query := "COPY (SELECT id, name, price FROM pgx_copy ORDER BY id) TO STDOUT (FORMAT csv, HEADER)"
	tag := harness.Must(conn.PgConn().CopyTo(ctx, &out, query))
	harness.Equal(tag.String(), "COPY 3")
	harness.Equal(out.String(), "id,name,price\n1,plain,1.50\n2,\"tab\t, line\n\",\n3,\"\",\n")
	exec(conn, "TRUNCATE pgx_copy")
	statement := "COPY pgx_copy (id, name, price) FROM STDIN (FORMAT csv, HEADER)"
	tag = harness.Must(conn.PgConn().CopyFrom(ctx, &out, statement))
	harness.Equal(tag.RowsAffected(), int64(3))
	_, err := conn.PgConn().CopyFrom(ctx, strings.NewReader("9\tx\nword\ty\n"), "COPY pgx_copy (id, name) FROM STDIN")
	harness.State(err, state, "22P02")
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"pgx_copy"}, []string{"id"}, pgx.CopyFromRows([][]any{{9}, {1}}))
	harness.State(err, state, "23505")
	harness.Equal(one[int](conn, "SELECT count(*) FROM pgx_copy"), 3)
	exec(conn, "DROP TABLE pgx_copy")
}
