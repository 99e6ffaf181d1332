// What a result says about its columns, and the catalogs.
import assert from 'node:assert/strict'
import { connected } from './sections.js'

export async function catalog() {
  await connected(async (client) => {
    await client.query(`DROP TABLE IF EXISTS described;
      CREATE TABLE described (id serial PRIMARY KEY, name varchar(30) NOT NULL DEFAULT 'none', price numeric(10, 2))`)
    const { fields } = await client.query('SELECT * FROM described')
    assert.deepEqual(fields.map((field) => [field.name, field.dataTypeID, field.columnID]),
      [['id', 23, 1], ['name', 1043, 2], ['price', 1700, 3]])
    assert.ok(fields.every((field) => field.tableID > 0 && field.tableID === fields[0].tableID))
    const { rows } = await client.query(`SELECT column_name, data_type, is_nullable, column_default
      FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1
      ORDER BY ordinal_position`, ['described'])
    assert.deepEqual(rows.map(Object.values), [
      ['id', 'integer', 'NO', "nextval('described_id_seq'::regclass)"],
      ['name', 'character varying', 'NO', "'none'::character varying"],
      ['price', 'numeric', 'YES', null],
    ])
    await client.query('DROP TABLE described')
  })
}
