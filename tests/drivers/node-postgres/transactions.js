// Transactions, savepoints, errors by class, cancel.
import assert from 'node:assert/strict'
import pg from 'pg'
import { column, connected, fails } from './sections.js'

export async function transactions() {
  await connected(async (client) => {
    await client.query('DROP TABLE IF EXISTS node_tx; CREATE TABLE node_tx (id int PRIMARY KEY)')
    await client.query('BEGIN')
    await client.query('INSERT INTO node_tx VALUES ($1)', [1])
    await client.query('SAVEPOINT a')
    await client.query('INSERT INTO node_tx VALUES ($1)', [2])
    await fails(client.query('INSERT INTO node_tx VALUES ($1)', [1]), '23505')
    await fails(client.query('SELECT 1'), '25P02')
    await client.query('ROLLBACK TO a')
    await client.query('INSERT INTO node_tx VALUES ($1)', [4])
    await client.query('COMMIT')
    await client.query('BEGIN')
    await client.query('DELETE FROM node_tx')
    await client.query('ROLLBACK')
    assert.deepEqual(await column(client, 'SELECT id FROM node_tx ORDER BY id'), [1, 4])
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    assert.deepEqual(await column(client, 'SHOW transaction_isolation'), ['repeatable read'])
    await fails(client.query('DELETE FROM node_tx'), '25006')
    assert.equal((await client.query('COMMIT')).command, 'ROLLBACK')
    await client.query('DROP TABLE node_tx')
  })
}

const FAILURES = [
  ['INSERT INTO failures VALUES (1, 1)', '23505'], ['INSERT INTO failures VALUES (2, NULL)', '23502'],
  ['INSERT INTO failures VALUES (2, -1)', '23514'], ['SELECT * FROM missing', '42P01'],
  ['SELECT missing FROM failures', '42703'], ['SELECT 1 / 0', '22012'], ['SELEC 1', '42601'],
  ["SELECT 'x'::int", '22P02'], ['SELECT 2147483647 + 1', '22003'], ['CREATE TABLE failures (id int)', '42P07'],
]

export async function errors() {
  await connected((client) => connected(async (other) => {
    await client.query(`DROP TABLE IF EXISTS failures;
      CREATE TABLE failures (id int PRIMARY KEY, n int NOT NULL CHECK (n > 0)); INSERT INTO failures VALUES (1, 1)`)
    for (const [statement, state] of FAILURES) {
      await fails(client.query(statement), state)
    }
    const { table, constraint, detail } = await fails(client.query('INSERT INTO failures VALUES ($1, 1)', [1]), '23505')
    assert.deepEqual([table, constraint, detail], ['failures', 'failures_pkey', 'Key (id)=(1) already exists.'])
    assert.equal((await fails(client.query('SELECT nope'), '42703')).position, '8')
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await client.query('SELECT * FROM failures')
    await other.query('UPDATE failures SET n = n + 1')
    await fails(client.query('UPDATE failures SET n = n + 1'), '40001')
    await client.query('ROLLBACK')
  }))
}

/** By the protocol's message on a connection of its own, by pg_cancel_backend, and by statement_timeout. */
export async function cancel() {
  await connected((client) => connected(async (other) => {
    const query = new pg.Query('SELECT pg_sleep(20)')
    const ended = new Promise((resolve, reject) => query.once('error', reject).once('end', resolve))
    setTimeout(() => new pg.Client().cancel(client, query), 300)
    client.query(query)
    await fails(ended, '57014')
    const sleeping = fails(client.query('SELECT pg_sleep(20)'), '57014')
    setTimeout(() => other.query('SELECT pg_cancel_backend($1)', [client.processID]).catch(() => client.end()), 300)
    await sleeping
    await client.query("SET statement_timeout TO '200ms'")
    await fails(client.query('SELECT pg_sleep($1)', [20]), '57014')
    assert.deepEqual(await column(client, 'SELECT 1'), [1])
  }))
}
