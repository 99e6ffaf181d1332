"""psycopg2: connections, their parameters and settings, pools."""

import psycopg2
from psycopg2.pool import SimpleConnectionPool

from sections import equal

def query(conn, statement, values=None):
    with conn.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()

def connect():
    conn = psycopg2.connect("application_name=drivers", options="-c statement_timeout=70s")
    conn.autocommit = True
    equal(query(conn, "SHOW application_name; SHOW statement_timeout"), [("70s",)])
    equal(query(conn, "SELECT %s, 'плов ☕'", ("𝄞",)), [("𝄞", "плов ☕")])
    equal((conn.encoding, conn.get_parameter_status("standard_conforming_strings")), ("UTF8", "on"))
    assert conn.server_version >= 150000 and conn.info.backend_pid != 0
    conn.set_client_encoding("UTF8")
    with conn.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS missing")
    assert conn.notices[-1].startswith("NOTICE:"), conn.notices
    conn.reset()
    conn.close()
    pool = SimpleConnectionPool(1, 2, "")
    pooled = pool.getconn()
    equal(query(pooled, "SELECT 1"), [(1,)])
    pool.putconn(pooled)
    pool.closeall()
    try:
        psycopg2.connect("dbname=missing")
    except psycopg2.OperationalError as error:
        assert 'database "missing" does not exist' in str(error), error
    else:
        raise AssertionError("a connection to a database that does not exist")
