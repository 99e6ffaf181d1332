"""asyncpg: all sections. It speaks the extended protocol in binary."""

import asyncpg
import sections

import catalog
import connect
import copying
import statements
import transactions
import values

sections.run(asyncpg.__version__, connect, values, statements, transactions, copying, catalog)
