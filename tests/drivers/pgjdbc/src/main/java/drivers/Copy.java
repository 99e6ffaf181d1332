// COPY in and out, through the driver's CopyManager.
package drivers;

import static drivers.Sections.equal;
import static drivers.Sections.exec;
import static drivers.Sections.fails;
import static drivers.Sections.open;
import static drivers.Sections.rows;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.io.StringWriter;
import java.util.List;
import org.postgresql.PGConnection;

final class Copy {
    private static final String CSV = "id,name\n1,plain\n2,\"tab\t, line\n, \"\"quotes\"\"\"\n3,\"\"\n4,\n";

    static void copy() throws Exception {
        try (var connection = open("")) {
            exec(connection, "DROP TABLE IF EXISTS jdbc_copy",
                "CREATE TABLE jdbc_copy (id int PRIMARY KEY, name text)");
            var copies = connection.unwrap(PGConnection.class).getCopyAPI();
            equal(copies.copyIn("COPY jdbc_copy FROM STDIN (FORMAT csv, HEADER)", new StringReader(CSV)), 4L);
            StringWriter out = new StringWriter();
            String query = "(SELECT * FROM jdbc_copy ORDER BY id)";
            equal(copies.copyOut("COPY " + query + " TO STDOUT (FORMAT csv, HEADER)", out), 4L);
            equal(out.toString(), CSV);
            var binary = new ByteArrayOutputStream();
            equal(copies.copyOut("COPY " + query + " TO STDOUT (FORMAT binary)", binary), 4L);
            exec(connection, "TRUNCATE jdbc_copy");
            var again = new ByteArrayInputStream(binary.toByteArray());
            equal(copies.copyIn("COPY jdbc_copy FROM STDIN (FORMAT binary)", again), 4L);
            fails("22P02", () -> copies.copyIn("COPY jdbc_copy FROM STDIN", new StringReader("9\tx\nword\ty\n")));
            var abandoned = copies.copyIn("COPY jdbc_copy FROM STDIN");
            abandoned.writeToCopy("10\tten\n".getBytes(), 0, 7);
            abandoned.cancelCopy();
            equal(rows(connection, "SELECT count(*) FROM jdbc_copy"), List.of("4"));
            exec(connection, "DROP TABLE jdbc_copy");
        }
    }
}
