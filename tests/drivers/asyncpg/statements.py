"""asyncpg: prepared statements, executemany, cursors."""

import asyncpg

from sections import equal

async def prepared():
    conn = await asyncpg.connect()
    plus = await conn.prepare("SELECT $1::int + 1 AS sum, $2::text AS name")
    for n in range(5):
        equal(tuple(await plus.fetchrow(n, "x")), (n + 1, "x"))
    equal([type.name for type in plus.get_parameters()], ["int4", "text"])
    equal([(column.name, column.type.name) for column in plus.get_attributes()], [("sum", "int4"), ("name", "text")])
    assert (await plus.explain(1, "x"))[0], "a plan in JSON"
    await conn.execute("DROP TABLE IF EXISTS asyncpg_prepared; CREATE TABLE asyncpg_prepared (id int PRIMARY KEY)")
    equal(len(await conn.fetch("SELECT * FROM asyncpg_prepared")), 0)
    await conn.execute("ALTER TABLE asyncpg_prepared ADD COLUMN n int")
    await conn.execute("INSERT INTO asyncpg_prepared VALUES (1, 2)")
    equal(tuple(await conn.fetchrow("SELECT * FROM asyncpg_prepared")), (1, 2))
    await conn.execute("DROP TABLE asyncpg_prepared")
    await conn.close()

async def batch():
    conn = await asyncpg.connect()
    await conn.execute("DROP TABLE IF EXISTS asyncpg_batch; CREATE TABLE asyncpg_batch (id int PRIMARY KEY, name text)")
    await conn.executemany("INSERT INTO asyncpg_batch VALUES ($1, $2)", [(n, f"name {n}") for n in range(500)])
    if hasattr(conn, "fetchmany"):
        returned = await conn.fetchmany("UPDATE asyncpg_batch SET name = 'x' WHERE id = $1 RETURNING id", [(1,), (2,)])
        equal([row["id"] for row in returned], [1, 2])
    try:
        await conn.executemany("INSERT INTO asyncpg_batch VALUES ($1, $2)", [(1000, "a"), (1, "b"), (1001, "c")])
    except asyncpg.UniqueViolationError:
        pass
    equal(await conn.fetchval("SELECT count(*) FROM asyncpg_batch"), 500)
    await conn.execute("DROP TABLE asyncpg_batch")
    await conn.close()

async def cursors():
    conn = await asyncpg.connect()
    async with conn.transaction():
        seen = [row["n"] async for row in conn.cursor("SELECT n FROM generate_series(1, 20) n WHERE n > $1", 2,
                                                      prefetch=7)]
        equal(seen, list(range(3, 21)))
        cursor = await conn.cursor("SELECT n FROM generate_series(1, 20) n")
        equal([row["n"] for row in await cursor.fetch(3)], [1, 2, 3])
        equal(await cursor.forward(5), 5)
        equal((await cursor.fetchrow())["n"], 9)
        await conn.execute("DECLARE named SCROLL CURSOR FOR SELECT n FROM generate_series(1, 20) n")
        equal([row["n"] for row in await conn.fetch("FETCH 3 FROM named")], [1, 2, 3])
        equal([row["n"] for row in await conn.fetch("FETCH BACKWARD 1 FROM named")], [2])
        await conn.execute("CLOSE named")
    await conn.close()
