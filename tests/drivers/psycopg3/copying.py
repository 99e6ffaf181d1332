"""psycopg 3: COPY in and out, in text, CSV and binary."""

import psycopg

from sections import equal
from version import BEFORE_3_2

ROWS = [(1, "plain", None), (2, "tab\t, line\n, back\\slash", b"\x00\xff"), (3, "", b"")]

def copy():
    with psycopg.connect(autocommit=True) as conn, conn.cursor() as cursor:
        conn.execute("DROP TABLE IF EXISTS psycopg3_copy")
        conn.execute("CREATE TABLE psycopg3_copy (id int PRIMARY KEY, name text, data bytea)")
        for options in ["", "(FORMAT binary)"]:
            conn.execute("TRUNCATE psycopg3_copy")
            with cursor.copy(f"COPY psycopg3_copy FROM STDIN {options}") as copying:
                if options:
                    copying.set_types(["int4", "text", "bytea"])
                for row in ROWS:
                    copying.write_row(row)
            equal(cursor.rowcount, 3)
            with cursor.copy(f"COPY (SELECT * FROM psycopg3_copy ORDER BY id) TO STDOUT {options}") as copying:
                copying.set_types(["int4", "text", "bytea"])
                # Earlier versions of the driver give bytes as views of them.
                plain = lambda value: bytes(value) if isinstance(value, memoryview) else value
                equal([tuple(map(plain, row)) for row in copying.rows()], ROWS)
        with cursor.copy("COPY (SELECT id, name FROM psycopg3_copy ORDER BY id) TO STDOUT (FORMAT csv, HEADER)") as out:
            equal(b"".join(bytes(part) for part in out),
                  b'id,name\n1,plain\n2,"tab\t, line\n, back\\slash"\n3,""\n')
        try:
            with cursor.copy("COPY psycopg3_copy FROM STDIN") as copying:
                copying.write_row((4, "four", None))
                raise ValueError("ours")
        # Earlier versions of the driver raise the server's answer.
        except (psycopg.errors.QueryCanceled if BEFORE_3_2 else ValueError):
            pass
        try:
            with cursor.copy("COPY psycopg3_copy FROM STDIN") as copying:
                copying.write("5\tfive\t\\N\nx\tsix\t\\N\n")
        except psycopg.errors.InvalidTextRepresentation as error:
            assert "line 2" in error.diag.context, error.diag.context
        equal(conn.execute("SELECT count(*) FROM psycopg3_copy").fetchone(), (3,))
        conn.execute("DROP TABLE psycopg3_copy")
