"""SQLAlchemy: its types as columns of a table that it creates, with both of psycopg's formats."""

import datetime as dt

from sqlalchemy import (ARRAY, JSON, BigInteger, Boolean, Column, Date, DateTime, Double, Float, Integer, Interval,
                        LargeBinary, MetaData, Numeric, SmallInteger, String, Table, Text, Time, Uuid, insert, select)
from sqlalchemy.dialects.postgresql import BYTEA, CHAR, JSONB, REAL, TIMESTAMP, UUID

from connect import engine
from samples import DOCUMENTS, SAMPLES
from sections import equal

TYPES = {
    "c_bool": Boolean, "c_int2": SmallInteger, "c_int4": Integer, "c_int8": BigInteger, "c_float4": REAL,
    "c_float8": Double, "c_numeric": Numeric, "c_text": Text, "c_varchar": String(20), "c_char": CHAR(5),
    "c_bytea": LargeBinary, "c_uuid": Uuid, "c_date": Date, "c_time": Time, "c_timestamp": DateTime,
    "c_timestamptz": TIMESTAMP(timezone=True), "c_interval": Interval, "c_ints": ARRAY(Integer),
    "c_bigints": ARRAY(BigInteger), "c_texts": ARRAY(Text), "c_numerics": ARRAY(Numeric), "c_bools": ARRAY(Boolean),
    "c_floats": ARRAY(Float(53)), "c_uuids": ARRAY(UUID), "c_dates": ARRAY(Date), "c_stamps": ARRAY(DateTime),
    "c_byteas": ARRAY(BYTEA), "c_json": JSON, "c_jsonb": JSONB,
}

def types_text():
    round_trip("psycopg2")

def types_binary():
    """psycopg 3 sends numbers and times in binary where it may choose."""
    round_trip("psycopg")

def round_trip(driver):
    metadata = MetaData()
    columns = [Column(name, type) for name, type in TYPES.items()]
    table = Table("sqlalchemy_types", metadata, Column("id", Integer, primary_key=True, autoincrement=False), *columns)
    metadata.drop_all(engine(driver))
    metadata.create_all(engine(driver))
    with engine(driver).begin() as conn:
        key = 0
        for column, type, values in SAMPLES + DOCUMENTS:
            for value in [*values, None]:
                key += 1
                conn.execute(insert(table), {"id": key, column: value})
                stored = conn.scalar(select(table.c[column]).where(table.c.id == key))
                equal(plain(stored), plain(value), column)
        equal(conn.scalar(select(table.c.id).where(table.c.c_jsonb["nested"].is_not(None))), key - 4)
        in_days = select(table.c.id).where(table.c.c_interval < dt.timedelta(days=-1))
        equal(len(conn.execute(in_days).all()), 1)
    metadata.drop_all(engine(driver))

def plain(value):
    return value.timestamp() if isinstance(value, dt.datetime) and value.tzinfo else value
