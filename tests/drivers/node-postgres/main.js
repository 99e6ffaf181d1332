// node-postgres: all sections.
import { createRequire } from 'node:module'
import { catalog } from './catalog.js'
import { connect } from './connect.js'
import { copy } from './copy.js'
import { batch, cursors, prepared } from './statements.js'
import { cancel, errors, transactions } from './transactions.js'
import { run } from './sections.js'
import { types_binary, types_text } from './types.js'

const { version } = createRequire(import.meta.url)('pg/package.json')
await run(version, {
  connect, types_text, types_binary, prepared, batch, transactions, errors, cancel, copy, cursors, catalog,
})
