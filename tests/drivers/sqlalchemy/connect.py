"""SQLAlchemy: engines, their pools, what the dialect asks at the first connection."""

import os

from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from sections import equal

def engine(driver="psycopg", database=os.environ["PGDATABASE"], **options):
    host, port, user = (os.environ[name] for name in ["PGHOST", "PGPORT", "PGUSER"])
    return create_engine(f"postgresql+{driver}://{user}@{host}:{port}/{database}", **options)

def connect():
    for driver in ["psycopg", "psycopg2"]:
        ours = engine(driver, pool_size=2, pool_pre_ping=True)
        for _ in range(3):
            with ours.connect() as conn:
                equal(conn.scalar(text("SELECT :a || 'плов ☕'"), {"a": "𝄞"}), "𝄞плов ☕")
        assert ours.dialect.server_version_info >= (15,), ours.dialect.server_version_info
        equal(ours.dialect.default_schema_name, "public")
        equal(ours.dialect.get_default_isolation_level(ours.raw_connection().dbapi_connection), "READ COMMITTED")
        ours.dispose()
    try:
        engine(database="missing").connect()
    except OperationalError as error:
        assert 'database "missing" does not exist' in str(error), error
    else:
        raise AssertionError("a connection to a database that does not exist")
