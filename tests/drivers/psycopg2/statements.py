"""psycopg2: prepared statements, batches, cursors of the server."""

import psycopg2
from psycopg2.extras import NamedTupleCursor, execute_batch, execute_values

from sections import equal

def prepared():
    """The driver prepares nothing itself: PREPARE and EXECUTE are SQL."""
    with psycopg2.connect("") as conn, conn.cursor() as cursor:
        cursor.execute("PREPARE plus (int, numeric) AS SELECT $1 + 1, $2 * 2")
        for n in range(5):
            cursor.execute("EXECUTE plus (%s, %s)", (n, n))
            equal(cursor.fetchone()[0], n + 1)
        cursor.execute("SELECT name, parameter_types::text FROM pg_prepared_statements")
        equal(cursor.fetchall(), [("plus", "{integer,numeric}")])
        cursor.execute("DEALLOCATE plus")

def batch():
    with psycopg2.connect("") as conn, conn.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS psycopg2_batch; "
                       "CREATE TABLE psycopg2_batch (id int PRIMARY KEY, name text)")
        cursor.executemany("INSERT INTO psycopg2_batch VALUES (%s, %s)", [(n, str(n)) for n in range(20)])
        execute_batch(cursor, "UPDATE psycopg2_batch SET name = %s WHERE id = %s", [(f"n{n}", n) for n in range(20)])
        ids = execute_values(cursor, "INSERT INTO psycopg2_batch VALUES %s RETURNING id",
                             [(n, None) for n in range(100, 350)], fetch=True)
        equal(len(ids), 250)
        cursor.execute("SELECT count(*), max(name) FROM psycopg2_batch")
        equal(cursor.fetchone(), (270, "n9"))
        cursor.execute("DROP TABLE psycopg2_batch")

def cursors():
    with psycopg2.connect("") as conn:
        with conn.cursor("named") as cursor:
            cursor.itersize = 7
            cursor.execute("SELECT n FROM generate_series(1, 20) n WHERE n > %s", (2,))
            equal(cursor.fetchmany(3), [(3,), (4,), (5,)])
            equal([n for n, in cursor], list(range(6, 21)))
        with conn.cursor("scrolling", scrollable=True, cursor_factory=NamedTupleCursor) as cursor:
            cursor.execute("SELECT n FROM generate_series(1, 20) n")
            cursor.scroll(10)
            equal(cursor.fetchone().n, 11)
            cursor.scroll(0, mode="absolute")
            equal(cursor.fetchone().n, 1)
        with conn.cursor("held", withhold=True) as cursor:
            cursor.execute("SELECT n FROM generate_series(1, 3) n")
            conn.commit()
            equal(cursor.fetchall(), [(1,), (2,), (3,)])
