"""asyncpg: COPY in and out. Records travel in binary; streams in any format."""

import io

import asyncpg

from sections import equal

ROWS = [(1, "plain", None), (2, "tab\t, line\n, back\\slash", b"\x00\xff"), (3, "", b"")]

async def copy():
    conn = await asyncpg.connect()
    await conn.execute("DROP TABLE IF EXISTS asyncpg_copy; "
                       "CREATE TABLE asyncpg_copy (id int PRIMARY KEY, name text, data bytea)")
    equal(await conn.copy_records_to_table("asyncpg_copy", records=ROWS), "COPY 3")
    equal([tuple(row) for row in await conn.fetch("SELECT * FROM asyncpg_copy ORDER BY id")], ROWS)
    csv = io.BytesIO()
    await conn.copy_from_query("SELECT id, name FROM asyncpg_copy WHERE id >= $1 ORDER BY id", 2, output=csv,
                               format="csv", header=True)
    equal(csv.getvalue(), b'id,name\n2,"tab\t, line\n, back\\slash"\n3,""\n')
    csv.seek(0)
    await conn.execute("TRUNCATE asyncpg_copy")
    status = await conn.copy_to_table("asyncpg_copy", source=csv, columns=["id", "name"], format="csv", header=True)
    equal(status, "COPY 2")
    binary = io.BytesIO()
    equal(await conn.copy_from_table("asyncpg_copy", output=binary, format="binary"), "COPY 2")
    assert binary.getvalue().startswith(b"PGCOPY\n\xff\r\n\0"), "the signature"
    try:
        await conn.copy_records_to_table("asyncpg_copy", records=[(9, "nine", None), (2, "two", None)])
    except asyncpg.UniqueViolationError:
        pass
    equal(await conn.fetchval("SELECT count(*) FROM asyncpg_copy"), 2)
    await conn.execute("DROP TABLE asyncpg_copy")
    await conn.close()
