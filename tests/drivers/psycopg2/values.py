"""psycopg2: every type as literal and as result. Results are text; the driver has no binary format."""

import datetime as dt

import psycopg2
from psycopg2.extras import Json, register_uuid

from samples import BEYOND, DOCUMENTS, SAMPLES, create_table
from sections import NotOfDriver, equal

# Types of which psycopg2 has no caster: the result is text.
TEXT_ARRAYS = {"uuid[]"}

def types_text():
    register_uuid()
    conn = psycopg2.connect("")
    conn.autocommit = True
    cursor, key = conn.cursor(), 0
    cursor.execute("SET TimeZone TO 'UTC'")
    cursor.execute(create_table("psycopg2_types"))
    for column, type, values in SAMPLES + DOCUMENTS:
        for value in [*values, None]:
            key += 1
            parameter = Json(value) if type.startswith("json") and value is not None else value
            insert = f"INSERT INTO psycopg2_types (id, {column}) VALUES (%s, CAST(%s AS {type}))"
            cursor.execute(insert, (key, parameter))
            cursor.execute(f"SELECT {column} FROM psycopg2_types WHERE id = %s", (key,))
            equal(plain(cursor.fetchone()[0]), plain(value), column)
    for expression, text in BEYOND:
        cursor.execute(f"SELECT ({expression})::text")
        equal(cursor.fetchone()[0], text)
    cursor.execute("DROP TABLE psycopg2_types")
    conn.close()

def plain(value):
    """Buffers as bytes, times with a zone as instants."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.timestamp() if isinstance(value, dt.datetime) and value.tzinfo else value

def types_binary():
    raise NotOfDriver("psycopg2 has no binary format")
