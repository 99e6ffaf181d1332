"""psycopg2: transactions, savepoints, errors by class, cancel."""

import threading

import psycopg2
from psycopg2 import errorcodes
from psycopg2.extensions import ISOLATION_LEVEL_REPEATABLE_READ, TRANSACTION_STATUS_IDLE, TRANSACTION_STATUS_INERROR

from connect import query
from expected import FAILURES, FAILURES_TABLE
from sections import equal

def transactions():
    conn = psycopg2.connect("")
    cursor = conn.cursor()
    with conn:
        cursor.execute("DROP TABLE IF EXISTS psycopg2_tx; CREATE TABLE psycopg2_tx (id int PRIMARY KEY)")
    with conn:
        cursor.execute("INSERT INTO psycopg2_tx VALUES (1)")
        cursor.execute("SAVEPOINT a")
        cursor.execute("INSERT INTO psycopg2_tx VALUES (2)")
        fails(conn, "INSERT INTO psycopg2_tx VALUES (1)", "23505")
        fails(conn, "SELECT 1", "25P02")
        equal(conn.get_transaction_status(), TRANSACTION_STATUS_INERROR)
        cursor.execute("ROLLBACK TO SAVEPOINT a")
        cursor.execute("RELEASE SAVEPOINT a")
        cursor.execute("INSERT INTO psycopg2_tx VALUES (4)")
    equal(conn.get_transaction_status(), TRANSACTION_STATUS_IDLE)
    cursor.execute("DELETE FROM psycopg2_tx")
    conn.rollback()
    equal(query(conn, "SELECT id FROM psycopg2_tx ORDER BY id"), [(1,), (4,)])
    conn.rollback()
    conn.set_session(isolation_level=ISOLATION_LEVEL_REPEATABLE_READ, readonly=True)
    equal(query(conn, "SHOW transaction_isolation"), [("repeatable read",)])
    fails(conn, "DELETE FROM psycopg2_tx", "25006")
    conn.close()

def errors():
    conn, other = psycopg2.connect(""), psycopg2.connect("")
    conn.autocommit = True
    with conn.cursor() as cursor:
        cursor.execute(FAILURES_TABLE)
    for statement, state in FAILURES:
        fails(conn, statement, state)
    error = fails(conn, "INSERT INTO failures VALUES (1, 1)", errorcodes.UNIQUE_VIOLATION)
    assert isinstance(error, psycopg2.IntegrityError)
    equal((error.diag.table_name, error.diag.constraint_name), ("failures", "failures_pkey"))
    equal(fails(conn, "SELECT nope", "42703").diag.statement_position, "8")
    other.set_session(isolation_level=ISOLATION_LEVEL_REPEATABLE_READ)
    query(other, "SELECT * FROM failures")
    with conn.cursor() as cursor:
        cursor.execute("UPDATE failures SET n = n + 1")
    error = fails(other, "UPDATE failures SET n = n + 1", "40001")
    assert isinstance(error, psycopg2.extensions.TransactionRollbackError)
    conn.close()
    other.close()

def cancel():
    conn = psycopg2.connect("")
    conn.autocommit = True
    timer = threading.Timer(0.3, conn.cancel)
    timer.start()
    error = fails(conn, "SELECT pg_sleep(20)", "57014")
    assert isinstance(error, psycopg2.extensions.QueryCanceledError)
    timer.join()
    equal(query(conn, "SELECT 1"), [(1,)])
    conn.close()

def fails(conn, statement, state):
    try:
        with conn.cursor() as cursor:
            cursor.execute(statement)
    except psycopg2.Error as error:
        assert error.pgcode == state, f"{statement}: {error.pgcode} {error}"
        return error
    raise AssertionError(f"no error: {statement}")
