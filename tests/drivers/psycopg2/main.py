"""psycopg2: all sections. It speaks the simple protocol only: values are part of the statement."""

import psycopg2
import sections

import catalog
import connect
import copying
import statements
import transactions
import values

sections.run(psycopg2.__version__.split()[0], connect, values, statements, transactions, copying, catalog)
