"""psycopg2: COPY in and out, in text and CSV."""

import io

import psycopg2

from connect import query
from sections import equal

CSV = 'id,name\n1,plain\n2,"tab\t, line\n, ""quotes"""\n3,""\n4,\n'

def copy():
    conn = psycopg2.connect("")
    conn.autocommit = True
    with conn.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS psycopg2_copy; CREATE TABLE psycopg2_copy (id int PRIMARY KEY, name text)")
        cursor.copy_expert("COPY psycopg2_copy FROM STDIN (FORMAT csv, HEADER)", io.StringIO(CSV))
        equal(cursor.rowcount, 4)
        out = io.StringIO()
        cursor.copy_expert("COPY (SELECT * FROM psycopg2_copy ORDER BY id) TO STDOUT (FORMAT csv, HEADER)", out)
        equal(out.getvalue(), CSV)
        cursor.copy_from(io.StringIO("10;ten\n11;-\n"), "psycopg2_copy", sep=";", null="-", columns=("id", "name"))
        equal(query(conn, "SELECT id, name FROM psycopg2_copy WHERE id >= 10 ORDER BY id"), [(10, "ten"), (11, None)])
        text = io.StringIO()
        cursor.copy_to(text, "psycopg2_copy", columns=("id",))
        equal(sorted(map(int, text.getvalue().split())), [1, 2, 3, 4, 10, 11])
        try:
            cursor.copy_from(io.StringIO("20\tx\nword\ty\n"), "psycopg2_copy")
        except psycopg2.DataError as error:
            equal(error.pgcode, "22P02")
        equal(query(conn, "SELECT count(*) FROM psycopg2_copy"), [(6,)])
        cursor.execute("DROP TABLE psycopg2_copy")
    conn.close()
