// Prepared statements, batches, generated keys, cursors.
package drivers;

import static drivers.Sections.equal;
import static drivers.Sections.exec;
import static drivers.Sections.fails;
import static drivers.Sections.open;
import static drivers.Sections.rows;

import java.sql.BatchUpdateException;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.Arrays;
import java.util.List;
import org.postgresql.PGStatement;

final class Statements {
    /** After five executions the driver names the statement on the server, which survives a change of the table. */
    static void prepared() throws Exception {
        try (var connection = open("")) {
            try (var plus = connection.prepareStatement("SELECT ? + 1")) {
                for (int n = 0; n < 8; n++) {
                    plus.setInt(1, n);
                    equal(rows(plus.executeQuery()), List.of(String.valueOf(n + 1)));
                }
                equal(plus.unwrap(PGStatement.class).isUseServerPrepare(), true);
                equal(plus.getParameterMetaData().getParameterTypeName(1), "int4");
                equal(plus.getMetaData().getColumnTypeName(1), "int4");
            }
            exec(connection, "DROP TABLE IF EXISTS jdbc_prepared", "CREATE TABLE jdbc_prepared (id int PRIMARY KEY)");
            try (var select = connection.prepareStatement("SELECT * FROM jdbc_prepared WHERE id >= ?")) {
                for (int n = 0; n < 8; n++) {
                    select.setInt(1, n);
                    equal(rows(select.executeQuery()), List.of());
                }
                exec(connection, "ALTER TABLE jdbc_prepared ADD COLUMN name text DEFAULT 'none'",
                    "INSERT INTO jdbc_prepared VALUES (100)");
                equal(rows(select.executeQuery()), List.of("100|none"));
            }
            exec(connection, "DROP TABLE jdbc_prepared");
        }
    }

    static void batch() throws Exception {
        for (boolean rewrite : new boolean[] {false, true}) {
            try (var connection = open("&reWriteBatchedInserts=" + rewrite)) {
                exec(connection, "DROP TABLE IF EXISTS jdbc_batch",
                    "CREATE TABLE jdbc_batch (id serial PRIMARY KEY, name text UNIQUE)");
                String insert = "INSERT INTO jdbc_batch (name) VALUES (?)";
                try (var statement = connection.prepareStatement(insert)) {
                    for (int n = 0; n < 300; n++) {
                        statement.setString(1, "name " + n);
                        statement.addBatch();
                    }
                    int counted = rewrite ? Statement.SUCCESS_NO_INFO : 1;
                    equal(Arrays.stream(statement.executeBatch()).allMatch(count -> count == counted), true);
                }
                try (var statement = connection.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS)) {
                    statement.setString(1, "another");
                    equal(statement.executeUpdate(), 1);
                    equal(rows(statement.getGeneratedKeys()), List.of("301|another"));
                }
                connection.setAutoCommit(false);
                try (Statement statement = connection.createStatement()) {
                    statement.addBatch("DELETE FROM jdbc_batch WHERE id = 1");
                    statement.addBatch("INSERT INTO jdbc_batch VALUES (2, 'two')");
                    var error = (BatchUpdateException) fails("23505", statement::executeBatch);
                    equal(error.getUpdateCounts(), new int[] {Statement.EXECUTE_FAILED, Statement.EXECUTE_FAILED});
                }
                connection.rollback();
                equal(rows(connection, "SELECT count(*) FROM jdbc_batch"), List.of("301"));
                connection.commit();
                exec(connection, "DROP TABLE jdbc_batch");
                connection.commit();
            }
        }
    }

    /** A fetch size makes a portal that is read in parts; scrolling and updates happen in the driver. */
    static void cursors() throws Exception {
        try (var connection = open("")) {
            connection.setAutoCommit(false);
            try (var statement = connection.prepareStatement("SELECT n FROM generate_series(1, 1000) n WHERE n > ?")) {
                statement.setFetchSize(7);
                statement.setInt(1, 2);
                ResultSet result = statement.executeQuery();
                for (int n = 3; n <= 1000; n++) {
                    equal(result.next() && result.getInt(1) == n, true);
                }
                equal(result.next(), false);
            }
            exec(connection, "DROP TABLE IF EXISTS jdbc_cursors",
                "CREATE TABLE jdbc_cursors (id int PRIMARY KEY, n int)",
                "INSERT INTO jdbc_cursors SELECT n, n FROM generate_series(1, 9) n");
            int scrolling = ResultSet.TYPE_SCROLL_INSENSITIVE;
            try (Statement statement = connection.createStatement(scrolling, ResultSet.CONCUR_UPDATABLE)) {
                ResultSet result = statement.executeQuery("SELECT id, n FROM jdbc_cursors ORDER BY id");
                equal(result.absolute(5) && result.getInt(1) == 5, true);
                result.updateInt("n", 50);
                result.updateRow();
                equal(result.previous() && result.getInt(1) == 4, true);
                result.deleteRow();
            }
            equal(rows(connection, "SELECT count(*), sum(n) FROM jdbc_cursors"), List.of("8|86"));
            exec(connection, "DECLARE named CURSOR FOR SELECT n FROM generate_series(1, 20) n");
            equal(rows(connection, "FETCH 2 FROM named"), List.of("1", "2"));
            exec(connection, "DROP TABLE jdbc_cursors");
            connection.commit();
        }
    }
}
