// Transactions, savepoints, autosave, errors by class, cancel.
package drivers;

import static drivers.Sections.equal;
import static drivers.Sections.exec;
import static drivers.Sections.fails;
import static drivers.Sections.open;
import static drivers.Sections.rows;

import java.sql.Connection;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.postgresql.util.PSQLException;

final class Transactions {
    static void transactions() throws Exception {
        try (var connection = open("")) {
            exec(connection, "DROP TABLE IF EXISTS jdbc_tx", "CREATE TABLE jdbc_tx (id int PRIMARY KEY)");
            connection.setAutoCommit(false);
            exec(connection, "INSERT INTO jdbc_tx VALUES (1)");
            Savepoint savepoint = connection.setSavepoint("a");
            exec(connection, "INSERT INTO jdbc_tx VALUES (2)");
            fails("23505", () -> exec(connection, "INSERT INTO jdbc_tx VALUES (1)"));
            fails("25P02", () -> exec(connection, "SELECT 1"));
            connection.rollback(savepoint);
            connection.releaseSavepoint(connection.setSavepoint());
            exec(connection, "INSERT INTO jdbc_tx VALUES (4)");
            connection.commit();
            exec(connection, "DELETE FROM jdbc_tx");
            connection.rollback();
            equal(rows(connection, "SELECT id FROM jdbc_tx ORDER BY id"), List.of("1", "4"));
            connection.rollback();
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            connection.setReadOnly(true);
            equal(connection.getTransactionIsolation(), Connection.TRANSACTION_REPEATABLE_READ);
            fails("25006", () -> exec(connection, "DELETE FROM jdbc_tx"));
            connection.rollback();
        }
        try (var connection = open("&autosave=always")) {
            connection.setAutoCommit(false);
            exec(connection, "DELETE FROM jdbc_tx WHERE id = 1");
            fails("22012", () -> exec(connection, "SELECT 1 / 0"));
            equal(rows(connection, "SELECT id FROM jdbc_tx"), List.of("4"));
            connection.commit();
            exec(connection, "DROP TABLE jdbc_tx");
            connection.commit();
        }
    }

    private static final String[][] FAILURES = {
        {"INSERT INTO failures VALUES (1, 1)", "23505"}, {"INSERT INTO failures VALUES (2, NULL)", "23502"},
        {"INSERT INTO failures VALUES (2, -1)", "23514"}, {"SELECT * FROM missing", "42P01"},
        {"SELECT missing FROM failures", "42703"}, {"SELECT 1 / 0", "22012"}, {"SELEC 1", "42601"},
        {"SELECT 'x'::int", "22P02"}, {"SELECT 2147483647 + 1", "22003"}, {"CREATE TABLE failures (id int)", "42P07"},
    };

    static void errors() throws Exception {
        try (var connection = open(""); var other = open("")) {
            exec(connection, "DROP TABLE IF EXISTS failures",
                "CREATE TABLE failures (id int PRIMARY KEY, n int NOT NULL CHECK (n > 0))",
                "INSERT INTO failures VALUES (1, 1)");
            for (String[] failing : FAILURES) {
                fails(failing[1], () -> exec(connection, failing[0]));
            }
            var error = (PSQLException) fails("23505", () -> exec(connection, "INSERT INTO failures VALUES (1, 1)"));
            equal(error.getServerErrorMessage().getTable(), "failures");
            equal(error.getServerErrorMessage().getConstraint(), "failures_pkey");
            equal(error.getServerErrorMessage().getDetail(), "Key (id)=(1) already exists.");
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            equal(rows(connection, "SELECT n FROM failures"), List.of("1"));
            exec(other, "UPDATE failures SET n = n + 1");
            fails("40001", () -> exec(connection, "UPDATE failures SET n = n + 1"));
            connection.rollback();
        }
    }

    static void cancel() throws Exception {
        try (var connection = open(""); Statement statement = connection.createStatement()) {
            var later = CompletableFuture.delayedExecutor(300, TimeUnit.MILLISECONDS);
            var cancelled = CompletableFuture.runAsync(() -> cancel(statement), later);
            fails("57014", () -> statement.executeQuery("SELECT pg_sleep(20)"));
            cancelled.get();
            statement.setQueryTimeout(1);
            fails("57014", () -> statement.executeQuery("SELECT pg_sleep(20)"));
            equal(rows(connection, "SELECT 1"), List.of("1"));
        }
    }

    private static void cancel(Statement statement) {
        try {
            statement.cancel();
        } catch (java.sql.SQLException error) {
            throw new IllegalStateException(error);
        }
    }
}
