"""psycopg 3: every type as parameter and as result, in text and in binary."""

import psycopg
from psycopg.types.json import Json, Jsonb

from samples import BEYOND, DOCUMENTS, SAMPLES, create_table
from sections import equal

WRAPPERS = {"json": Json, "jsonb": Jsonb}

def types_text():
    round_trip("%t", binary=False)

def types_binary():
    round_trip("%b", binary=True)

def round_trip(placeholder, binary):
    with psycopg.connect(autocommit=True) as conn:
        conn.execute("SET TimeZone TO 'UTC'")
        conn.execute(create_table("psycopg3_types"))
        cursor, key = conn.cursor(binary=binary), 0
        for column, type, values in SAMPLES + DOCUMENTS:
            wrap = WRAPPERS.get(type, lambda value: value)
            for value in [*values, None]:
                key += 1
                parameter = None if value is None and type != "json" else wrap(value)
                insert = f"INSERT INTO psycopg3_types (id, {column}) VALUES (%s, {placeholder}) RETURNING {column}"
                cursor.execute(insert, (key, parameter))
                equal(instant(cursor.fetchone()[0]), instant(value), f"{column} returned")
                cursor.execute(f"SELECT {column} FROM psycopg3_types WHERE id = %s", (key,))
                equal(instant(cursor.fetchone()[0]), instant(value), column)
        for expression, text in BEYOND:
            equal(cursor.execute(f"SELECT ({expression})::text").fetchone()[0], text)
        conn.execute("DROP TABLE psycopg3_types")

def instant(value):
    """Times with a zone are compared as instants."""
    return value.timestamp() if getattr(value, "tzinfo", None) else value
