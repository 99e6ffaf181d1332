"""psycopg 3: all sections."""

import psycopg
import sections

import catalog
import connect
import copying
import statements
import transactions
import values

sections.run(psycopg.__version__, connect, values, statements, transactions, copying, catalog)
