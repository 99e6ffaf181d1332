"""psycopg 3: what the driver asks about types, and the catalogs about columns."""

import psycopg
from psycopg.types import TypeInfo

from expected import CATALOG_TABLE, COLUMNS, EXPECTED_COLUMNS, EXPECTED_INFORMATION, INFORMATION
from sections import equal

def catalog():
    with psycopg.connect(autocommit=True) as conn:
        info = TypeInfo.fetch(conn, "jsonb")
        equal((info.name, info.oid, info.array_oid, info.regtype), ("jsonb", 3802, 3807, "jsonb"))
        equal(TypeInfo.fetch(conn, "missing"), None)
        conn.execute(CATALOG_TABLE)
        equal(conn.execute(COLUMNS).fetchall(), EXPECTED_COLUMNS)
        equal(conn.execute(INFORMATION).fetchall(), EXPECTED_INFORMATION)
        cursor = conn.execute("SELECT * FROM described")
        described = [(column.name, column.type_code, column.internal_size) for column in cursor.description]
        equal(described, [("id", 23, 4), ("name", 1043, None), ("price", 1700, None)])
        equal((cursor.description[1].display_size, cursor.description[2].precision), (30, 10))
        conn.execute("DROP TABLE described")
