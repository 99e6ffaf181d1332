"""SQLAlchemy on psycopg 3: the core, the ORM, reflection. The driver below is `postgresql+psycopg`."""

import sqlalchemy
import sections

import catalog
import connect
import copying
import statements
import transactions
import values

sections.run(sqlalchemy.__version__, connect, values, statements, transactions, copying, catalog)
