// DatabaseMetaData: what the driver asks the catalogs.
package drivers;

import static drivers.Sections.equal;
import static drivers.Sections.exec;
import static drivers.Sections.open;

import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.util.ArrayList;
import java.util.List;

final class Catalog {
    static void catalog() throws Exception {
        try (var connection = open("")) {
            exec(connection, "DROP TABLE IF EXISTS cat_books, cat_authors",
                "CREATE TABLE cat_authors (id serial PRIMARY KEY, name varchar(30) NOT NULL DEFAULT 'none')",
                "CREATE TABLE cat_books (id bigint, author int REFERENCES cat_authors (id) ON DELETE CASCADE,"
                    + " price numeric(10, 2), tags text[], PRIMARY KEY (author, id))",
                "CREATE INDEX cat_books_price ON cat_books (price)");
            DatabaseMetaData data = connection.getMetaData();
            equal(data.getDatabaseProductName(), "PostgreSQL");
            equal(data.getDatabaseMajorVersion() >= 15, true);
            equal(data.getMaxColumnNameLength(), 63);
            String[] tables = {"TABLE"};
            equal(list(data.getTables(null, "public", "cat\\_%", tables), "TABLE_NAME", "TABLE_TYPE"),
                List.of("cat_authors|TABLE", "cat_books|TABLE"));
            equal(list(data.getColumns(null, "public", "cat_authors", "%"), "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE",
                "NULLABLE", "COLUMN_DEF", "IS_AUTOINCREMENT"), List.of(
                "id|serial|10|0|nextval('cat_authors_id_seq'::regclass)|YES",
                "name|varchar|30|0|'none'::character varying|NO"));
            equal(list(data.getColumns(null, null, "cat_books", null), "COLUMN_NAME", "TYPE_NAME", "DECIMAL_DIGITS"),
                List.of("id|int8|0", "author|int4|0", "price|numeric|2", "tags|_text|0"));
            equal(list(data.getPrimaryKeys(null, "public", "cat_books"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"),
                List.of("author|1|cat_books_pkey", "id|2|cat_books_pkey"));
            equal(list(data.getIndexInfo(null, "public", "cat_books", false, false), "INDEX_NAME", "NON_UNIQUE",
                "COLUMN_NAME"), List.of("cat_books_pkey|f|author", "cat_books_pkey|f|id", "cat_books_price|t|price"));
            equal(list(data.getImportedKeys(null, "public", "cat_books"), "PKTABLE_NAME", "PKCOLUMN_NAME",
                "FKCOLUMN_NAME", "DELETE_RULE"),
                List.of("cat_authors|id|author|" + DatabaseMetaData.importedKeyCascade));
            equal(list(data.getSchemas(), "TABLE_SCHEM").contains("public"), true);
            List<String> types = list(data.getTypeInfo(), "TYPE_NAME");
            equal(types.containsAll(List.of("int4", "numeric", "jsonb", "_text")), true);
            equal(list(data.getTableTypes(), "TABLE_TYPE").contains("TABLE"), true);
            equal(list(data.getFunctions(null, "pg_catalog", "lower"), "FUNCTION_NAME").contains("lower"), true);
            exec(connection, "DROP TABLE cat_books, cat_authors");
        }
    }

    private static List<String> list(ResultSet result, String... columns) throws Exception {
        List<String> found = new ArrayList<>();
        while (result.next()) {
            List<String> values = new ArrayList<>();
            for (String column : columns) {
                values.add(result.getString(column));
            }
            found.add(String.join("|", values));
        }
        return found;
    }
}
