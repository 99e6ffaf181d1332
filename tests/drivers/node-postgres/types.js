// Every type as parameter and as result, in text; in binary what the driver can: any parameter, some results.
import assert from 'node:assert/strict'
import { column, connected } from './sections.js'

const UUID = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
const DOCUMENT = { a: [1, 2.5, null, true], ключ: '"\'\\' }

// Type of the column, the value written, and what is read where that differs.
const SAMPLES = [
  ['bool', true], ['bool', false],
  ['int2', -32768], ['int2', 32767], ['int4', -2147483648], ['int4', 2147483647],
  ['int8', '-9223372036854775808'], ['int8', '9223372036854775807'],
  ['float4', 1.5], ['float8', 0.1], ['float8', 1.7976931348623157e308], ['float8', 5e-324],
  ['float8', Infinity], ['float8', -Infinity], ['float8', NaN],
  ['numeric', '0'], ['numeric', '12345678901234567890.123456789012345678'], ['numeric', '-1.50'], ['numeric', 'NaN'],
  ['text', ''], ['text', 'плов ☕ 𝄞'], ['text', 'it\'s "a" \\ tab\t\n'], ['text', 'x'.repeat(100_000)],
  ['varchar(20)', 'twenty characters ok'], ['char(5)', 'ab', 'ab   '],
  ['bytea', Buffer.from([])], ['bytea', Buffer.from([0, 255, 92, 39])], ['uuid', UUID],
  ['date', '0044-03-15 BC', new Date(-43, 2, 15)], ['date', 'infinity', Infinity],
  ['time', '24:00:00'], ['timestamp', new Date('2024-02-29T12:30:00.001Z')],
  ['timestamptz', new Date('2024-02-29T12:30:00.001Z')], ['timestamptz', '-infinity', -Infinity],
  ['timestamptz', '0001-12-31 23:59:59+00 BC', new Date('0000-12-31T23:59:59Z')],
  ['interval', '1 year 2 mons -3 days 04:05:06', { years: 1, months: 2, days: -3, hours: 4, minutes: 5, seconds: 6 }],
  ['json', DOCUMENT], ['jsonb', DOCUMENT], ['jsonb', '[1, "a"]', [1, 'a']],
  ['int4[]', []], ['int4[]', [1, null, -2147483648]], ['int4[]', [[1, 2], [3, 4]]],
  ['text[]', ['a,b', 'quo"te', 'back\\slash', '', 'NULL', null]], ['numeric[]', ['1.10', null], [1.1, null]],
  ['float8[]', [0.1, 5e-324]], ['bool[]', [true, false, null]], ['bytea[]', [Buffer.from([0, 255])]],
  ['uuid[]', [UUID, null]],
]

export async function types_text() {
  await connected(async (client) => {
    const columns = SAMPLES.map(([type], i) => `c${i} ${type}`).join(', ')
    await client.query(`DROP TABLE IF EXISTS node_types; CREATE TABLE node_types (id int PRIMARY KEY, ${columns})`)
    for (const [i, [type, value, expected = value]] of SAMPLES.entries()) {
      await client.query(`INSERT INTO node_types (id, c${i}) VALUES ($1, $2)`, [i, value])
      const [stored] = await column(client, `SELECT c${i} FROM node_types WHERE id = $1`, [i])
      assert.deepEqual(type === 'interval' ? { ...stored } : stored, expected, type)
      const nulls = await column(client, `SELECT c${i} FROM node_types WHERE id <> $1`, [i])
      assert.ok(nulls.every((value) => value === null), type)
    }
    await client.query('DROP TABLE node_types')
  })
}

const bytes = (hex) => Buffer.from(hex, 'hex')

// Type, the bytes of a value, its text.
const IN_BINARY = [
  ['bool', bytes('01'), 'true'], ['int2', bytes('8000'), '-32768'], ['int4', bytes('7fffffff'), '2147483647'],
  ['int8', bytes('8000000000000000'), '-9223372036854775808'], ['float4', bytes('7f800000'), 'Infinity'],
  ['float8', bytes('0000000000000001'), '5e-324'],
  ['numeric', bytes('000200004000000200011388'), '-1.50'],
  ['text', Buffer.from('плов'), 'плов'], ['bytea', bytes('00ff'), '\\x00ff'], ['date', bytes('7fffffff'), 'infinity'],
  ['time', bytes('000000141dd76000'), '24:00:00'], ['timestamp', bytes('8000000000000000'), '-infinity'],
  ['uuid', bytes(UUID.replaceAll('-', '')), UUID], ['jsonb', bytes('015b315d'), '[1]'],
  ['interval', bytes('00000000000f4240000000030000000e'), '1 year 2 mons 3 days 00:00:01'],
  ['int4[]', bytes('0000000100000000000000170000000100000001000000040000002a'), '{42}'],
]

/** The driver decodes results as UTF-8 even where they are binary: only bytes that are ASCII arrive intact. */
export async function types_binary() {
  await connected(async (client) => {
    for (const [type, value, text] of IN_BINARY) {
      assert.deepEqual(await column(client, `SELECT $1::${type}::text`, [value]), [text], type)
    }
    const text = `SELECT true AS a, 100::int2 AS b, 70000::int4 AS c, 'text' AS d, $1::numeric AS e, NULL::int AS f,
      ARRAY[1, 2] AS g`
    const { rows } = await client.query({ text, values: ['12.5'], binary: true })
    assert.deepEqual(rows, [{ a: true, b: 100, c: 70000, d: 'text', e: 12.5, f: null, g: [1, 2] }])
  })
}
