// Connections, their settings and notices, pools.
import assert from 'node:assert/strict'
import pg from 'pg'
import { column, connected, fails } from './sections.js'

export async function connect() {
  const config = { application_name: 'drivers', statement_timeout: 70_000, options: '-c search_path=public' }
  await connected(async (client) => {
    const notices = []
    client.on('notice', (notice) => notices.push(notice.code))
    assert.deepEqual(await column(client, 'SHOW application_name'), ['drivers'])
    assert.deepEqual(await column(client, 'SHOW statement_timeout'), ['70s'])
    assert.deepEqual(await column(client, 'SHOW search_path'), ['public'])
    assert.deepEqual(await column(client, "SELECT $1::text || 'плов ☕'", ['𝄞']), ['𝄞плов ☕'])
    await client.query('DROP TABLE IF EXISTS missing')
    assert.deepEqual(notices, ['00000'])
    assert.equal((await client.query('')).command, null)
  }, config)
  const pool = new pg.Pool({ max: 3 })
  const results = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => pool.query('SELECT $1::int AS n', [n])))
  assert.deepEqual(results.map((result) => result.rows[0].n), [1, 2, 3, 4, 5, 6])
  await pool.end()
  await fails(connected(() => {}, { database: 'missing' }), '3D000')
}
