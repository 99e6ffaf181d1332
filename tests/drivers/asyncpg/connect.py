"""asyncpg: connections, their settings, pools, which reset a session between its users."""

import asyncpg

from sections import equal

async def connect():
    settings = {"application_name": "drivers", "statement_timeout": "70s"}
    conn = await asyncpg.connect(server_settings=settings)
    equal(await conn.fetchval("SHOW application_name"), "drivers")
    equal(await conn.fetchval("SHOW statement_timeout"), "70s")
    equal(await conn.fetchval("SELECT $1::text || 'плов ☕'", "𝄞"), "𝄞плов ☕")
    assert conn.get_server_version().major >= 15 and conn.get_server_pid() != 0
    equal(conn.get_settings().server_encoding, "UTF8")
    notices = []
    conn.add_log_listener(lambda _, message: notices.append(message.sqlstate))
    equal(await conn.execute("DROP TABLE IF EXISTS missing"), "DROP TABLE")
    equal(notices, ["00000"])
    await conn.close()
    async with asyncpg.create_pool(min_size=1, max_size=2) as pool:
        for _ in range(3):
            async with pool.acquire() as pooled:
                equal(await pooled.fetchval("SHOW application_name"), "")
                await pooled.execute("SET application_name TO 'changed'; SELECT pg_advisory_lock(77)")
                equal(await pooled.fetchval("SHOW application_name"), "changed")
    try:
        await asyncpg.connect(database="missing")
    except asyncpg.InvalidCatalogNameError:
        return
    raise AssertionError("a connection to a database that does not exist")
