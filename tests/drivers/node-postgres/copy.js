// COPY in and out, as streams.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { text } from 'node:stream/consumers'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { column, connected, fails } from './sections.js'

const CSV = 'id,name\n1,plain\n2,"tab\t, line\n, ""quotes"""\n3,""\n4,\n'

export async function copy() {
  await connected(async (client) => {
    await client.query('DROP TABLE IF EXISTS node_copy; CREATE TABLE node_copy (id int PRIMARY KEY, name text)')
    const input = client.query(copyFrom('COPY node_copy FROM STDIN (FORMAT csv, HEADER)'))
    await pipeline(Readable.from([CSV.slice(0, 20), CSV.slice(20)]), input)
    assert.equal(input.rowCount, 4)
    const output = client.query(copyTo('COPY (SELECT * FROM node_copy ORDER BY id) TO STDOUT (FORMAT csv, HEADER)'))
    assert.equal(await text(output), CSV)
    const wrong = client.query(copyFrom('COPY node_copy FROM STDIN'))
    await fails(pipeline(Readable.from(['9\tx\nword\ty\n']), wrong), '22P02')
    assert.deepEqual(await column(client, 'SELECT count(*)::int FROM node_copy'), [4])
    await client.query('DROP TABLE node_copy')
  })
}
