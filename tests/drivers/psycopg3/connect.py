"""psycopg 3: connections, their parameters and settings."""

import psycopg

from sections import equal

def connect():
    with psycopg.connect("application_name=drivers", options="-c statement_timeout=70s") as conn:
        equal(conn.execute("SHOW application_name").fetchone(), ("drivers",))
        equal(conn.execute("SHOW statement_timeout").fetchone(), ("70s",))
        equal(conn.execute("SELECT 'плов ☕'").fetchone(), ("плов ☕",))
        equal(conn.info.parameter_status("server_encoding"), "UTF8")
        equal(conn.info.parameter_status("integer_datetimes"), "on")
        assert conn.info.server_version >= 150000, conn.info.server_version
        assert conn.info.backend_pid != 0
    notices = []
    with psycopg.connect(autocommit=True) as conn:
        conn.add_notice_handler(lambda notice: notices.append(notice.sqlstate))
        conn.execute("DROP TABLE IF EXISTS missing")
        conn.execute("SELECT set_config('TimeZone', 'Asia/Kolkata', false)")
        equal(conn.info.timezone.key, "Asia/Kolkata")
        equal(conn.execute("").description, None)
    equal(notices, ["00000"])
    try:
        psycopg.connect("dbname=missing")
    except psycopg.OperationalError as error:
        assert 'database "missing" does not exist' in str(error), error
    else:
        raise AssertionError("a connection to a database that does not exist")
