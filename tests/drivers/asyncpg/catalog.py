"""asyncpg: what the driver asks about types, and the catalogs about columns."""

import asyncpg

from expected import CATALOG_TABLE, COLUMNS, EXPECTED_COLUMNS, EXPECTED_INFORMATION, INFORMATION
from sections import equal

async def catalog():
    conn = await asyncpg.connect()
    await conn.execute(CATALOG_TABLE)
    equal([tuple(row) for row in await conn.fetch(COLUMNS)], EXPECTED_COLUMNS)
    equal([tuple(row) for row in await conn.fetch(INFORMATION)], EXPECTED_INFORMATION)
    # A codec of the user is looked up by the name of its type.
    await conn.set_type_codec("uuid", encoder=str, decoder=str, schema="pg_catalog", format="text")
    equal(await conn.fetchval("SELECT $1::uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
          "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
    await conn.reset_type_codec("uuid", schema="pg_catalog")
    await conn.reload_schema_state()
    await conn.execute("DROP TABLE described")
    await conn.close()
