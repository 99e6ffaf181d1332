package main

import (
	"github.com/jackc/pgx/v5"

	"cortado.test/drivers/harness"
)

// What the driver asks about types, and the catalogs about columns.
func catalog() {
	conn := open()
	defer conn.Close(ctx)
	loaded := harness.Must(conn.LoadType(ctx, "_int4"))
	harness.Equal(loaded.OID, uint32(1007))
	exec(conn, harness.CatalogTable, pgx.QueryExecModeSimpleProtocol)
	harness.Equal(all[string](conn, harness.Columns), harness.ExpectedColumns)
	rows := harness.Must(conn.Query(ctx, "SELECT * FROM described"))
	var fields [][2]any
	for _, field := range rows.FieldDescriptions() {
		fields = append(fields, [2]any{field.Name, field.DataTypeOID})
		harness.Equal(field.TableOID != 0, true)
	}
	rows.Close()
	harness.Equal(fields, [][2]any{{"id", uint32(23)}, {"name", uint32(1043)}, {"price", uint32(1700)}})
	exec(conn, "DROP TABLE described")
}
