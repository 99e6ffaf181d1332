"""SQLAlchemy: COPY is the driver's, reached below a connection of the pool."""

from connect import engine
from sections import equal

def copy():
    with engine().begin() as conn:
        cursor = conn.connection.dbapi_connection.cursor()
        cursor.execute("CREATE TEMP TABLE sqlalchemy_copy (id int PRIMARY KEY, name text)")
        with cursor.copy("COPY sqlalchemy_copy FROM STDIN") as copying:
            copying.write_row((1, "one"))
            copying.write_row((2, None))
        with cursor.copy("COPY (SELECT * FROM sqlalchemy_copy ORDER BY id) TO STDOUT") as copying:
            equal(list(copying.rows()), [("1", "one"), ("2", None)])
