// Named statements, batches, cursors.
import assert from 'node:assert/strict'
import Cursor from 'pg-cursor'
import { column, connected, fails } from './sections.js'

export async function prepared() {
  await connected(async (client) => {
    for (let n = 0; n < 5; n++) {
      const { rows } = await client.query({ name: 'plus', text: 'SELECT $1::int + 1 AS sum', values: [n] })
      assert.deepEqual(rows, [{ sum: n + 1 }])
    }
    await fails(client.query({ name: 'divide', text: 'SELECT 1 / $1::int', values: [0] }), '22012')
    assert.deepEqual(await column(client, 'SELECT 1 / $1::int', [1]), [1])
    assert.deepEqual(await column(client, "SELECT name FROM pg_prepared_statements WHERE name = 'plus'"), ['plus'])
  })
}

/** Queries are queued and sent one after the other; several statements without values are one query. */
export async function batch() {
  await connected(async (client) => {
    await client.query('DROP TABLE IF EXISTS node_batch; CREATE TABLE node_batch (id int PRIMARY KEY, name text)')
    const insert = 'INSERT INTO node_batch VALUES ($1, $2)'
    await Promise.all(Array.from({ length: 200 }, (_, n) => client.query(insert, [n, `name ${n}`])))
    const results = await client.query("SELECT 1 AS a; UPDATE node_batch SET name = 'x' WHERE id < 10; SELECT 2 AS b")
    assert.deepEqual(results.map((result) => [result.command, result.rowCount]),
      [['SELECT', 1], ['UPDATE', 10], ['SELECT', 1]])
    await fails(client.query('DELETE FROM node_batch; SELECT 1 / 0'), '22012')
    const unnested = 'INSERT INTO node_batch SELECT * FROM unnest($1::int[], $2::text[]) RETURNING id'
    assert.deepEqual(await column(client, unnested, [[1000, 1001], ['a', null]]), [1000, 1001])
    assert.deepEqual(await column(client, 'SELECT count(*)::int FROM node_batch'), [202])
    await client.query('DROP TABLE node_batch')
  })
}

/** A cursor of the protocol: a portal that is read in parts. */
export async function cursors() {
  await connected(async (client) => {
    const cursor = client.query(new Cursor('SELECT n FROM generate_series(1, 20) n WHERE n > $1', [2]))
    assert.deepEqual((await cursor.read(3)).map((row) => row.n), [3, 4, 5])
    assert.equal((await cursor.read(100)).length, 15)
    assert.deepEqual(await cursor.read(1), [])
    await cursor.close()
    const left = client.query(new Cursor('SELECT n FROM generate_series(1, 100000) n'))
    assert.equal((await left.read(10)).length, 10)
    await left.close()
    await client.query('BEGIN')
    await client.query('DECLARE named SCROLL CURSOR FOR SELECT n FROM generate_series(1, 20) n')
    assert.deepEqual(await column(client, 'FETCH 3 FROM named'), [1, 2, 3])
    assert.deepEqual(await column(client, 'FETCH LAST FROM named'), [20])
    await client.query('COMMIT')
  })
}
