"""asyncpg: transactions, savepoints, errors by class, cancel."""

import asyncio

import asyncpg

from expected import FAILURES, FAILURES_TABLE
from sections import equal

async def transactions():
    conn = await asyncpg.connect()
    await conn.execute("DROP TABLE IF EXISTS asyncpg_tx; CREATE TABLE asyncpg_tx (id int PRIMARY KEY)")
    async with conn.transaction():
        await conn.execute("INSERT INTO asyncpg_tx VALUES (1)")
        try:
            async with conn.transaction():
                await conn.execute("INSERT INTO asyncpg_tx VALUES (2)")
                await conn.execute("INSERT INTO asyncpg_tx VALUES (1)")
        except asyncpg.UniqueViolationError:
            pass
        await conn.execute("INSERT INTO asyncpg_tx VALUES (4)")
    equal([row["id"] for row in await conn.fetch("SELECT id FROM asyncpg_tx ORDER BY id")], [1, 4])
    transaction = conn.transaction()
    await transaction.start()
    await conn.execute("DELETE FROM asyncpg_tx")
    await fails(conn, "SELECT 1 / 0", "22012")
    await fails(conn, "SELECT 1", "25P02")
    await transaction.rollback()
    equal(await conn.fetchval("SELECT count(*) FROM asyncpg_tx"), 2)
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        equal(await conn.fetchval("SHOW transaction_isolation"), "repeatable read")
        equal(await conn.fetchval("SHOW transaction_read_only"), "on")
    await conn.close()

async def errors():
    conn, other = await asyncpg.connect(), await asyncpg.connect()
    await conn.execute(FAILURES_TABLE)
    for statement, state in FAILURES:
        await fails(conn, statement, state)
    error = await fails(conn, "INSERT INTO failures VALUES (1, 1)", "23505")
    assert isinstance(error, asyncpg.IntegrityConstraintViolationError)
    equal((error.table_name, error.constraint_name, error.detail),
          ("failures", "failures_pkey", "Key (id)=(1) already exists."))
    equal((await fails(conn, "SELECT nope", "42703")).position, "8")
    async with conn.transaction(isolation="repeatable_read"):
        await conn.fetch("SELECT * FROM failures")
        await other.execute("UPDATE failures SET n = n + 1")
        await conn.execute("SAVEPOINT before")
        await fails(conn, "UPDATE failures SET n = n + 1", "40001")
        await conn.execute("ROLLBACK TO before")
    await conn.close()
    await other.close()

async def cancel():
    conn = await asyncpg.connect()
    by_driver = conn.fetch("SELECT pg_sleep(20)", timeout=0.3)
    for sleep in [by_driver, asyncio.wait_for(conn.fetch("SELECT pg_sleep(20)"), 0.3)]:
        try:
            await sleep
        except asyncio.TimeoutError:
            continue
        raise AssertionError("the statement ran to its end")
    await conn.execute("SET statement_timeout TO '200ms'")
    await fails(conn, "SELECT pg_sleep(20)", "57014")
    await conn.close()

async def fails(conn, statement, state):
    try:
        await conn.fetch(statement)
    except asyncpg.PostgresError as error:
        assert error.sqlstate == state, f"{statement}: {error.sqlstate} {error}"
        return error
    raise AssertionError(f"no error: {statement}")
