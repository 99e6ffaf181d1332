"""psycopg 3: prepared statements, executemany and pipelines, cursors of the client and of the server."""

import psycopg

from sections import equal
from version import BEFORE_3_2

def prepared():
    with psycopg.connect(autocommit=True) as conn:
        for n in range(10):  # prepared by the driver after five
            equal(conn.execute("SELECT %s + 1", (n,)).fetchone(), (n + 1,))
        cursor = conn.execute("SELECT %s::text || 'x'", ("a",), prepare=True)
        equal(cursor.fetchone(), ("ax",))
        names = conn.execute("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE '_pg3_%'").fetchone()
        equal(names, (2,))
        conn.execute("PREPARE plus (int) AS SELECT $1 + 1")
        equal(conn.execute("EXECUTE plus (41)").fetchone(), (42,))
        conn.execute("DEALLOCATE ALL")
        # Earlier versions of the driver do not notice that their statements are gone.
        if not BEFORE_3_2:
            equal(conn.execute("SELECT %s + 1", (1,)).fetchone(), (2,))

def batch():
    with psycopg.connect(autocommit=True) as conn:
        conn.execute("DROP TABLE IF EXISTS psycopg3_batch; CREATE TABLE psycopg3_batch (id int PRIMARY KEY, name text)")
        with conn.cursor() as cursor:
            rows = [(n, f"name {n}") for n in range(500)]
            cursor.executemany("INSERT INTO psycopg3_batch VALUES (%s, %s) RETURNING id", rows, returning=True)
            equal(cursor.fetchone(), (0,))
        with conn.pipeline() as pipeline:
            first = conn.execute("SELECT count(*) FROM psycopg3_batch")
            second = conn.execute("UPDATE psycopg3_batch SET name = upper(name) WHERE id < %s", (10,))
            pipeline.sync()
            equal(first.fetchone(), (500,))
            equal(second.rowcount, 10)
        try:
            with conn.pipeline():
                conn.execute("DELETE FROM psycopg3_batch")
                conn.execute("SELECT 1 / 0")
                conn.execute("SELECT 1")
        except psycopg.errors.DivisionByZero:
            pass
        equal(conn.execute("SELECT count(*) FROM psycopg3_batch").fetchone(), (500,))
        conn.execute("DROP TABLE psycopg3_batch")

def cursors():
    with psycopg.connect() as conn:
        with conn.cursor("named") as cursor:
            cursor.itersize = 7
            cursor.execute("SELECT n FROM generate_series(1, 20) n WHERE n > %s", (2,))
            equal(cursor.fetchmany(3), [(3,), (4,), (5,)])
            equal([n for n, in cursor], list(range(6, 21)))
        with conn.cursor("scrolling", scrollable=True) as cursor:
            cursor.execute("SELECT n FROM generate_series(1, 20) n")
            cursor.scroll(10)
            equal(cursor.fetchone(), (11,))
            cursor.scroll(-11)
            equal(cursor.fetchone(), (1,))
        conn.commit()
        with conn.cursor("held", withhold=True) as cursor:
            cursor.execute("SELECT n FROM generate_series(1, 3) n")
            conn.commit()
            equal(cursor.fetchall(), [(1,), (2,), (3,)])
        equal([n for n, in conn.cursor().stream("SELECT n FROM generate_series(1, 1000) n")][-1], 1000)
