// Connections, their settings, warnings, isValid.
package drivers;

import static drivers.Sections.equal;
import static drivers.Sections.exec;
import static drivers.Sections.fails;
import static drivers.Sections.open;
import static drivers.Sections.openDatabase;
import static drivers.Sections.rows;

import java.sql.Statement;
import java.util.List;

final class Connect {
    static void connect() throws Exception {
        try (var connection = open("&ApplicationName=drivers&options=-c%20statement_timeout=70s")) {
            equal(rows(connection, "SHOW application_name"), List.of("drivers"));
            equal(rows(connection, "SHOW statement_timeout"), List.of("70s"));
            equal(rows(connection, "SELECT 'плов ☕ 𝄞'"), List.of("плов ☕ 𝄞"));
            equal(connection.isValid(5), true);
            equal(connection.getSchema(), "public");
            equal(connection.getCatalog(), System.getenv("PGDATABASE"));
            connection.setClientInfo("ApplicationName", "changed");
            equal(rows(connection, "SHOW application_name"), List.of("changed"));
            connection.setSchema("public");
            try (Statement statement = connection.createStatement()) {
                statement.execute("DROP TABLE IF EXISTS missing");
                equal(statement.getWarnings().getSQLState(), "00000");
            }
            exec(connection, "");
        }
        for (String mode : List.of("simple", "extended", "extendedForPrepared", "extendedCacheEverything")) {
            try (var connection = open("&preferQueryMode=" + mode)) {
                equal(rows(connection, "SELECT 1, 'a'"), List.of("1|a"));
            }
        }
        fails("3D000", () -> openDatabase("missing", ""));
    }
}
