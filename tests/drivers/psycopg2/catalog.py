"""psycopg2: what the driver asks about types, and the catalogs about columns."""

import psycopg2
from psycopg2.extras import HstoreAdapter, register_default_jsonb

from connect import query
from expected import CATALOG_TABLE, COLUMNS, EXPECTED_COLUMNS, EXPECTED_INFORMATION, INFORMATION
from sections import equal

def catalog():
    conn = psycopg2.connect("")
    conn.autocommit = True
    equal(HstoreAdapter.get_oids(conn), ((), ()))
    register_default_jsonb(conn)
    with conn.cursor() as cursor:
        cursor.execute(CATALOG_TABLE)
        equal(query(conn, COLUMNS), EXPECTED_COLUMNS)
        equal(query(conn, INFORMATION), EXPECTED_INFORMATION)
        cursor.execute("SELECT * FROM described")
        described = [(column.name, column.type_code) for column in cursor.description]
        equal(described, [("id", 23), ("name", 1043), ("price", 1700)])
        cursor.execute("SELECT tableoid::regclass::text, 1 FROM described UNION SELECT 'described'::regclass::text, 2")
        equal(cursor.fetchall(), [("described", 2)])
        cursor.execute("DROP TABLE described")
    conn.close()
