// Runs the sections and reports each in one line; see tests/drivers/README.md.
package drivers;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;

final class Sections {
    interface Section {
        void run() throws Exception;
    }

    interface Action {
        void run() throws Exception;
    }

    /** Runs the sections in order. Returns 1 if one failed. */
    static int run(String version, Map<String, Section> sections) {
        System.out.println("version " + version);
        int failed = 0;
        for (var section : sections.entrySet()) {
            try {
                section.getValue().run();
                System.out.println("ok " + section.getKey());
            } catch (Exception | AssertionError error) {
                failed = 1;
                System.out.println("FAILED " + section.getKey() + " " + describe(error));
            }
        }
        return failed;
    }

    private static String describe(Throwable error) {
        String place = Arrays.stream(error.getStackTrace())
            .filter(frame -> frame.getClassName().startsWith("drivers.") && !frame.getClassName().endsWith(".Sections"))
            .findFirst().map(frame -> frame.getFileName() + ":" + frame.getLineNumber()).orElse("");
        String state = error instanceof SQLException failure ? failure.getSQLState() + " " : "";
        String text = (place + " " + state + error.getMessage()).replaceAll("\\s+", " ");
        return text.substring(0, Math.min(text.length(), 600));
    }

    /** Connects to the server of PGHOST, PGPORT, PGUSER and PGDATABASE, with options of the driver. */
    static Connection open(String options) throws SQLException {
        return openDatabase(System.getenv("PGDATABASE"), options);
    }

    static Connection openDatabase(String database, String options) throws SQLException {
        var env = System.getenv();
        return DriverManager.getConnection("jdbc:postgresql://" + env.get("PGHOST") + ":" + env.get("PGPORT") + "/"
            + database + "?user=" + env.get("PGUSER") + "&connectTimeout=10" + options);
    }

    static void exec(Connection connection, String... statements) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String text : statements) {
                statement.execute(text);
            }
        }
    }

    /** The rows of a query, with their columns as text, separated by `|`. */
    static List<String> rows(Connection connection, String query) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(query)) {
            return rows(result);
        }
    }

    static List<String> rows(ResultSet result) throws SQLException {
        List<String> rows = new ArrayList<>();
        while (result.next()) {
            List<String> columns = new ArrayList<>();
            for (int i = 1; i <= result.getMetaData().getColumnCount(); i++) {
                columns.add(String.valueOf(result.getString(i)));
            }
            rows.add(String.join("|", columns));
        }
        return rows;
    }

    static void equal(Object actual, Object expected) {
        if (!Objects.deepEquals(actual, expected)) {
            throw new AssertionError(show(actual) + " instead of " + show(expected));
        }
    }

    private static String show(Object value) {
        return Arrays.deepToString(new Object[] {value});
    }

    /** The action must fail with the SQLSTATE. Returns its error. */
    static SQLException fails(String state, Action action) throws Exception {
        try {
            action.run();
        } catch (SQLException error) {
            if (!state.equals(error.getSQLState())) {
                throw new AssertionError(error.getSQLState() + " instead of " + state + ": " + error.getMessage());
            }
            return error;
        }
        throw new AssertionError("no error instead of " + state);
    }
}
