#!/usr/bin/env python3
"""Errors in the pipelines of asyncpg and of libpq (through psycopg). Argument: port.

asyncpg sends Parse, Describe, Flush, and waits for the answer. libpq's pipeline mode sends Flush where the application
asks for results. Both waited for ever if the statement failed. Prints one line for each error.
"""

import asyncio
import sys

import asyncpg
import psycopg

PATIENCE_S = 60

async def with_asyncpg(port):
    pool = await asyncpg.create_pool(
        host="127.0.0.1", port=port, user="postgres", database="postgres", min_size=1, max_size=1
    )
    for statement in ["selec 1", "select nope", "select 1 / 0", "select * from missing where a = $1"]:
        # The pool resets the session in between: advisory locks, cursors, listeners, settings.
        async with pool.acquire() as connection:
            try:
                await connection.prepare(statement)
                await connection.fetch(statement)
            except asyncpg.PostgresError as error:
                print("asyncpg", error.sqlstate)
            assert await connection.fetchval("select $1::int + 1", 41) == 42
    async with pool.acquire() as connection:
        assert await connection.fetchval("select current_setting('server_encoding')") == "UTF8"
        async with connection.transaction():
            await connection.execute("create table if not exists cursors (id int primary key)")
            await connection.execute("insert into cursors values (1), (2), (3) on conflict do nothing")
            seen = []
            async for row in connection.cursor("select id from cursors order by id", prefetch=1):
                await connection.execute("update cursors set id = id + 10 where id = $1", row["id"])
                seen.append(row["id"])
            print("asyncpg cursor", seen)
        await connection.execute("drop table cursors")
    await pool.close()

def with_libpq(port):
    with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres", autocommit=True) as connection:
        for statement in ["selec 1", "select nope", "select 1 / 0"]:
            try:
                with connection.pipeline() as pipeline:
                    connection.execute("select 1")
                    cursor = connection.execute(statement)
                    pipeline.sync()
                    cursor.fetchall()
            except psycopg.Error as error:
                print("libpq", error.sqlstate)
            assert connection.execute("select 42").fetchone() == (42,)
        flush_without_sync(connection.pgconn)

def flush_without_sync(connection):
    """The exact messages: Parse, Describe, Flush. Sync only after the answer."""
    connection.enter_pipeline_mode()
    connection.send_prepare(b"", b"selec 1")
    connection.send_describe_prepared(b"")
    connection.send_flush_request()
    while connection.flush():
        pass
    result = connection.get_result()
    print("libpq flush", result.error_field(psycopg.pq.DiagnosticField.SQLSTATE).decode())
    connection.pipeline_sync()
    while connection.flush():
        pass
    while result is None or result.status != psycopg.pq.ExecStatus.PIPELINE_SYNC:
        result = connection.get_result()
    connection.exit_pipeline_mode()

port = int(sys.argv[1])
asyncio.run(asyncio.wait_for(with_asyncpg(port), PATIENCE_S))
with_libpq(port)
