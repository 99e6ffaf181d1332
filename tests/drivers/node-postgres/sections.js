// Runs the sections and reports each in one line; see tests/drivers/README.md.
import assert from 'node:assert/strict'
import pg from 'pg'

/** Runs the sections in order, and exits with 1 if one failed. */
export async function run(version, sections) {
  console.log('version', version)
  let failed = false
  for (const [name, section] of Object.entries(sections)) {
    try {
      await section()
      console.log('ok', name)
    } catch (error) {
      failed = true
      console.log('FAILED', name, describe(error))
    }
  }
  process.exit(failed ? 1 : 0)
}

function describe(error) {
  const places = [...String(error.stack).matchAll(/node-postgres[^/]*\/(\w+\.js:\d+)/g)].map((match) => match[1])
  const place = places.find((name) => !name.startsWith('sections')) ?? ''
  return `${place} ${error.code ?? ''} ${error.message}`.split(/\s+/).join(' ').slice(0, 600)
}

/** Connects to the server of PGHOST, PGPORT, PGUSER and PGDATABASE, and runs the function with the client. */
export async function connected(use, config = {}) {
  const client = new pg.Client({ connectionTimeoutMillis: 10_000, ...config })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/** The statement must fail with the SQLSTATE. Returns its error. */
export async function fails(promise, state) {
  const error = await promise.then(() => assert.fail(`no error instead of ${state}`), (error) => error)
  assert.equal(error.code, state, error.message)
  return error
}

/** The values of a query's only column. */
export async function column(client, text, values) {
  const { rows } = await client.query({ text, values, rowMode: 'array' })
  return rows.map((row) => row[0])
}
