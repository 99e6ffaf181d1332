"""SQLAlchemy: transactions, savepoints, isolation levels, errors by class, cancel."""

import threading

from sqlalchemy import text
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError, ProgrammingError

from connect import engine
from expected import FAILURES, FAILURES_TABLE
from sections import equal

CLASSES = {"23": IntegrityError, "22": DataError, "42": ProgrammingError}

def transactions():
    ours = engine()
    with ours.begin() as conn:
        conn.execute(text("DROP TABLE IF EXISTS sqlalchemy_tx"))
        conn.execute(text("CREATE TABLE sqlalchemy_tx (id int PRIMARY KEY)"))
    with ours.begin() as conn:
        conn.execute(text("INSERT INTO sqlalchemy_tx VALUES (1)"))
        savepoint = conn.begin_nested()
        conn.execute(text("INSERT INTO sqlalchemy_tx VALUES (2)"))
        fails(conn, "INSERT INTO sqlalchemy_tx VALUES (1)", "23505")
        savepoint.rollback()
        with conn.begin_nested():
            conn.execute(text("INSERT INTO sqlalchemy_tx VALUES (4)"))
    with ours.connect() as conn:
        conn.execute(text("DELETE FROM sqlalchemy_tx"))
        conn.rollback()
        equal(conn.scalars(text("SELECT id FROM sqlalchemy_tx ORDER BY id")).all(), [1, 4])
        fails(conn, "SELECT 1 / 0", "22012")
        fails(conn, "SELECT 1", "25P02")
    with ours.connect().execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True) as conn:
        equal(conn.scalar(text("SHOW transaction_isolation")), "repeatable read")
        fails(conn, "DELETE FROM sqlalchemy_tx", "25006")
    with ours.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.execute(text("DROP TABLE sqlalchemy_tx"))

def errors():
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.exec_driver_sql(FAILURES_TABLE)
        for statement, state in FAILURES:
            error = fails(conn, statement, state)
            assert isinstance(error, CLASSES[state[:2]]), f"{statement}: {type(error)}"
        with engine().connect().execution_options(isolation_level="REPEATABLE READ") as other:
            other.execute(text("SELECT * FROM failures"))
            conn.execute(text("UPDATE failures SET n = n + 1"))
            error = fails(other, "UPDATE failures SET n = n + 1", "40001")
            assert isinstance(error, OperationalError)

def cancel():
    with engine().connect() as conn:
        timer = threading.Timer(0.3, conn.connection.dbapi_connection.cancel)
        timer.start()
        fails(conn, "SELECT pg_sleep(20)", "57014")
        timer.join()
        conn.rollback()
        equal(conn.scalar(text("SELECT 1")), 1)

def fails(conn, statement, state):
    try:
        conn.execute(text(statement))
    except DBAPIError as error:
        assert error.orig.sqlstate == state, f"{statement}: {error.orig.sqlstate} {error}"
        return error
    raise AssertionError(f"no error: {statement}")
