"""psycopg 3: transactions, savepoints, errors by class, cancel."""

import threading
import time

import psycopg
from psycopg.pq import TransactionStatus

from expected import FAILURES, FAILURES_TABLE
from sections import equal

def transactions():
    with psycopg.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS psycopg3_tx; CREATE TABLE psycopg3_tx (id int PRIMARY KEY)")
        conn.commit()
        with conn.transaction():
            conn.execute("INSERT INTO psycopg3_tx VALUES (1)")
            try:
                with conn.transaction("inner"):
                    conn.execute("INSERT INTO psycopg3_tx VALUES (2)")
                    conn.execute("INSERT INTO psycopg3_tx VALUES (1)")
            except psycopg.errors.UniqueViolation:
                pass
            with conn.transaction(force_rollback=True):
                conn.execute("INSERT INTO psycopg3_tx VALUES (3)")
            conn.execute("INSERT INTO psycopg3_tx VALUES (4)")
        equal(conn.info.transaction_status, TransactionStatus.IDLE)
        equal(conn.execute("SELECT id FROM psycopg3_tx ORDER BY id").fetchall(), [(1,), (4,)])
        conn.execute("DELETE FROM psycopg3_tx")
        conn.rollback()
        equal(conn.execute("SELECT count(*) FROM psycopg3_tx").fetchone(), (2,))
        conn.rollback()
        conn.isolation_level, conn.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
        equal(conn.execute("SHOW transaction_isolation").fetchone(), ("repeatable read",))
        fails(conn, "DELETE FROM psycopg3_tx", "25006")
        fails(conn, "SELECT 1", "25P02")
        equal(conn.info.transaction_status, TransactionStatus.INERROR)
        conn.rollback()

def errors():
    with psycopg.connect(autocommit=True) as conn, psycopg.connect() as other:
        conn.execute(FAILURES_TABLE)
        for statement, state in FAILURES:
            fails(conn, statement, state)
        diag = fails(conn, "INSERT INTO failures VALUES (1, 1)", "23505").diag
        equal((diag.table_name, diag.constraint_name, diag.severity_nonlocalized),
              ("failures", "failures_pkey", "ERROR"))
        equal(diag.message_detail, "Key (id)=(1) already exists.")
        equal(fails(conn, "SELECT 1 +* 2 FROM missing", "42883", "42P01").diag.severity, "ERROR")
        equal(fails(conn, "SELECT nope", "42703").diag.statement_position, "8")
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("SELECT * FROM failures")
        conn.execute("UPDATE failures SET n = n + 1")
        assert isinstance(fails(other, "UPDATE failures SET n = n + 1", "40001"), psycopg.errors.SerializationFailure)

def cancel():
    with psycopg.connect(autocommit=True) as conn:
        timer = threading.Timer(0.3, conn.cancel_safe if hasattr(conn, "cancel_safe") else conn.cancel)
        timer.start()
        started = time.monotonic()
        fails(conn, "SELECT pg_sleep(20)", "57014")
        assert time.monotonic() - started < 10
        timer.join()
        conn.execute("SET statement_timeout TO '200ms'")
        fails(conn, "SELECT pg_sleep(20)", "57014")
        equal(conn.execute("SELECT 1").fetchone(), (1,))

def fails(conn, statement, *states):
    """The error of the statement, which must have one of the SQLSTATEs."""
    try:
        conn.execute(statement)
    except psycopg.Error as error:
        assert error.sqlstate in states, f"{statement}: {error.sqlstate} {error}"
        return error
    raise AssertionError(f"no error: {statement}")
