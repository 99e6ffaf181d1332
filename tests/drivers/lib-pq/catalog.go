package main

import (
	"cortado.test/drivers/harness"
)

// What database/sql asks about columns, and the catalogs.
func catalog() {
	db := open("")
	defer db.Close()
	exec(db, harness.CatalogTable)
	harness.Equal(all[string](db, harness.Columns), harness.ExpectedColumns)
	rows := harness.Must(db.Query("SELECT * FROM described"))
	defer rows.Close()
	var found [][2]string
	for _, column := range harness.Must(rows.ColumnTypes()) {
		found = append(found, [2]string{column.Name(), column.DatabaseTypeName()})
		if precision, scale, has := column.DecimalSize(); has {
			harness.Equal([]int64{precision, scale}, []int64{10, 2})
		}
	}
	harness.Check(rows.Close())
	harness.Equal(found, [][2]string{{"id", "INT4"}, {"name", "VARCHAR"}, {"price", "NUMERIC"}})
	exec(db, "DROP TABLE described")
}
