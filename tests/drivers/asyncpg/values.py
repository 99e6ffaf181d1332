"""asyncpg: every type as parameter and as result, in binary."""

import datetime as dt
import json
from decimal import Decimal

import asyncpg

from samples import BEYOND, DOCUMENTS, SAMPLES, create_table
from sections import NotOfDriver, equal

# The driver maps infinities to the ends of Python's types.
INFINITIES = [("date", dt.date.max), ("date", dt.date.min), ("timestamp", dt.datetime.max),
              ("timestamp", dt.datetime.min)]

async def types_text():
    raise NotOfDriver("asyncpg sends and reads binary only; codecs of the user are in types_binary")

async def types_binary():
    conn = await asyncpg.connect()
    await conn.execute("SET TimeZone TO 'UTC'")
    await conn.execute(create_table("asyncpg_types"))
    for type in ["json", "jsonb"]:
        await conn.set_type_codec(type, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    key = 0
    for column, type, values in SAMPLES + DOCUMENTS:
        for value in [*values, None]:
            key += 1
            insert = f"INSERT INTO asyncpg_types (id, {column}) VALUES ($1, $2) RETURNING {column}"
            equal(plain(await conn.fetchval(insert, key, value)), plain(value), f"{column} returned")
            stored = await conn.fetchval(f"SELECT {column} FROM asyncpg_types WHERE id = $1", key)
            equal(plain(stored), plain(value), column)
    for type, value in INFINITIES:
        text = "infinity" if value in (dt.date.max, dt.datetime.max) else "-infinity"
        equal(await conn.fetchval(f"SELECT '{text}'::{type}"), value)
    for expression, text in BEYOND:
        equal(await conn.fetchval(f"SELECT ({expression})::text"), text)
    equal(await conn.fetchval("SELECT row(1, 'a'::text, NULL::numeric)"), await record(conn))
    await conn.execute("DROP TABLE asyncpg_types")
    await conn.close()

async def record(conn):
    """Records arrive in binary with the types of their fields."""
    row = await conn.fetchval("SELECT (1, 'a'::text, NULL::numeric)")
    equal(tuple(row), (1, "a", None))
    return row

def plain(value):
    """Times with a zone as instants. The driver ends a numeric's digits where its groups of four end."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, Decimal) and value.is_finite():
        return value.normalize()
    return value.timestamp() if isinstance(value, dt.datetime) and value.tzinfo else value
