// Every type as parameter and as result, in text and in binary.
package drivers;

import static drivers.Sections.equal;
import static drivers.Sections.exec;
import static drivers.Sections.open;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.SQLException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.UUID;
import org.postgresql.util.PGInterval;
import org.postgresql.util.PGobject;

final class Types {
    /** A type, values of it in Java, and the class to ask for. */
    record Sample(String type, Class<?> of, Object... values) {}

    private static final OffsetDateTime NOON = OffsetDateTime.of(2024, 2, 29, 12, 30, 0, 1000, ZoneOffset.ofHours(5));

    private static final Sample[] SAMPLES = {
        new Sample("bool", Boolean.class, true, false),
        new Sample("int2", Short.class, Short.MIN_VALUE, Short.MAX_VALUE),
        new Sample("int4", Integer.class, Integer.MIN_VALUE, Integer.MAX_VALUE),
        new Sample("int8", Long.class, Long.MIN_VALUE, Long.MAX_VALUE),
        new Sample("float4", Float.class, 1.5f, Float.NEGATIVE_INFINITY, Float.NaN),
        new Sample("float8", Double.class, 0.1, Double.MAX_VALUE, Double.MIN_VALUE,
            Double.POSITIVE_INFINITY, Double.NaN),
        new Sample("numeric", BigDecimal.class, BigDecimal.ZERO, new BigDecimal("-0.00000001"), new BigDecimal("1.50"),
            new BigDecimal("12345678901234567890.123456789012345678"), BigDecimal.TEN.pow(200)),
        new Sample("text", String.class, "", "плов ☕ 𝄞", "it's \"a\" \\ tab\t\n", "x".repeat(100_000)),
        new Sample("varchar(20)", String.class, "", "twenty characters ok"),
        new Sample("char(5)", String.class, "ab   "),
        new Sample("bytea", byte[].class, new byte[0], new byte[] {0, -1, 92, 39}),
        new Sample("uuid", UUID.class, UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), new UUID(0, 0)),
        new Sample("date", LocalDate.class, LocalDate.of(2024, 2, 29), LocalDate.of(-43, 3, 15), LocalDate.MAX,
            LocalDate.MIN),
        new Sample("time", LocalTime.class, LocalTime.MIDNIGHT, LocalTime.of(23, 59, 59, 999_999_000)),
        new Sample("timestamp", LocalDateTime.class, LocalDateTime.of(2024, 2, 29, 12, 30, 0, 1000),
            LocalDateTime.of(-43, 3, 15, 1, 2, 3), LocalDateTime.MAX, LocalDateTime.MIN),
        new Sample("timestamptz", OffsetDateTime.class, NOON.withOffsetSameInstant(ZoneOffset.UTC), OffsetDateTime.MAX),
        new Sample("interval", PGInterval.class, new PGInterval(1, 2, -3, 4, 5, 6.789)),
        new Sample("json", PGobject.class, object("json", "{\"a\": [1, null]}")),
        new Sample("jsonb", PGobject.class, object("jsonb", "{\"a\": [1, null], \"ключ\": \"\\\"\"}")),
        new Sample("int4[]", Integer[].class, new Integer[0], new Integer[] {1, null, Integer.MIN_VALUE}),
        new Sample("int8[]", Long[].class, (Object) new Long[] {Long.MAX_VALUE, null}),
        new Sample("text[]", String[].class, (Object) new String[] {"a,b", "quo\"te", "back\\slash", "", "NULL", null}),
        new Sample("numeric[]", BigDecimal[].class, (Object) new BigDecimal[] {new BigDecimal("1.10"), null}),
        new Sample("float8[]", Double[].class, (Object) new Double[] {0.1, Double.MIN_VALUE}),
        new Sample("bool[]", Boolean[].class, (Object) new Boolean[] {true, null}),
        new Sample("uuid[]", UUID[].class, (Object) new UUID[] {new UUID(1, 2)}),
        new Sample("date[]", Date[].class, (Object) new Date[] {Date.valueOf("2024-02-29"), null}),
        new Sample("bytea[]", byte[][].class, (Object) new byte[][] {{0, -1}, {}}),
    };

    static void text() throws Exception {
        roundTrip("jdbc_text", "&binaryTransfer=false");
    }

    /** With the threshold -1 the driver asks for binary at the first execution. */
    static void binary() throws Exception {
        roundTrip("jdbc_binary", "&binaryTransfer=true&prepareThreshold=-1");
    }

    private static void roundTrip(String table, String options) throws Exception {
        try (Connection connection = open(options)) {
            StringBuilder columns = new StringBuilder();
            for (int i = 0; i < SAMPLES.length; i++) {
                columns.append(", c").append(i).append(' ').append(SAMPLES[i].type);
            }
            exec(connection, "SET TimeZone TO 'UTC'", "DROP TABLE IF EXISTS " + table,
                "CREATE TABLE " + table + " (id int PRIMARY KEY" + columns + ")");
            int key = 0;
            for (int i = 0; i < SAMPLES.length; i++) {
                for (Object value : SAMPLES[i].values) {
                    store(connection, table, i, ++key, value);
                    equal(load(connection, table, i, key), value);
                }
                store(connection, table, i, ++key, null);
                equal(load(connection, table, i, key), null);
            }
            exec(connection, "DROP TABLE " + table);
        }
    }

    private static void store(Connection connection, String table, int i, int key, Object value) throws SQLException {
        String insert = "INSERT INTO " + table + " (id, c" + i + ") VALUES (?, ?)";
        try (var statement = connection.prepareStatement(insert)) {
            statement.setInt(1, key);
            if (value instanceof Object[] items) {
                String element = SAMPLES[i].type.replace("[]", "");
                statement.setArray(2, connection.createArrayOf(element, items));
            } else if (value == null) {
                statement.setNull(2, java.sql.Types.NULL);
            } else {
                statement.setObject(2, value);
            }
            equal(statement.executeUpdate(), 1);
        }
    }

    private static Object load(Connection connection, String table, int i, int key) throws SQLException {
        try (var statement = connection.prepareStatement("SELECT c" + i + " FROM " + table + " WHERE id = ?")) {
            statement.setInt(1, key);
            var result = statement.executeQuery();
            equal(result.next(), true);
            Class<?> of = SAMPLES[i].of;
            if (result.getObject(1) == null || result.wasNull()) {
                return null;
            }
            if (of.isArray() && of != byte[].class) {
                return result.getArray(1).getArray();
            }
            if (of == PGobject.class || of == byte[].class || of == Short.class) {
                return plain(result.getObject(1), of);
            }
            return result.getObject(1, of);
        }
    }

    /** JDBC reads int2 as Integer, and a PGobject remembers how it arrived. */
    private static Object plain(Object value, Class<?> of) {
        if (of == Short.class && value instanceof Integer number) {
            return number.shortValue();
        }
        return value instanceof PGobject arrived ? object(arrived.getType(), arrived.getValue()) : value;
    }

    private static PGobject object(String type, String value) {
        try {
            PGobject object = new PGobject();
            object.setType(type);
            object.setValue(value);
            return object;
        } catch (SQLException error) {
            throw new IllegalArgumentException(error);
        }
    }
}
