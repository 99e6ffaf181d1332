"""What the Python drivers write and read back: (name of the column, type, values). NULL is added to each."""

import datetime as dt
import uuid
from decimal import Decimal

INFINITY = float("inf")
EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))
UUID = uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
# In the order of jsonb: shorter keys first.
DOCUMENT = {"a": [1, 2.5, None, True], "quote": "\"'\\", "nested": {"empty": {}}, "ключ": "значение"}

SAMPLES = [
    ("c_bool", "bool", [True, False]),
    ("c_int2", "int2", [-32768, 0, 32767]),
    ("c_int4", "int4", [-2147483648, -1, 2147483647]),
    ("c_int8", "int8", [-9223372036854775808, 9223372036854775807]),
    ("c_float4", "float4", [1.5, -INFINITY, float("nan")]),
    ("c_float8", "float8", [0.1, 1.7976931348623157e308, 5e-324, INFINITY, -INFINITY, float("nan")]),
    ("c_numeric", "numeric", [Decimal("0"), Decimal("12345678901234567890.123456789012345678"), Decimal("-0.00000001"),
                              Decimal("1.50"), Decimal(10**200), Decimal("NaN")]),
    ("c_text", "text", ["", "плов ☕ 𝄞", "it's \"a\" \\ tab\tline\n", "x" * 100_000]),
    ("c_varchar", "varchar(20)", ["", "twenty characters ok"]),
    ("c_char", "char(5)", ["ab   ", "abcde"]),
    ("c_bytea", "bytea", [b"", bytes(range(256)), b"\\x00"]),
    ("c_uuid", "uuid", [UUID, uuid.UUID(int=0)]),
    ("c_date", "date", [dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]),
    ("c_time", "time", [dt.time(0), dt.time(23, 59, 59, 999999)]),
    ("c_timestamp", "timestamp", [dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29, 12, 30, 0, 1),
                                  dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]),
    ("c_timestamptz", "timestamptz", [dt.datetime(2024, 2, 29, 12, 30, tzinfo=EAST)]),
    ("c_interval", "interval", [dt.timedelta(0), dt.timedelta(days=-3, seconds=5, microseconds=7)]),
    ("c_ints", "int4[]", [[], [1, None, -2147483648], [[1, 2], [3, 4]]]),
    ("c_bigints", "int8[]", [[9223372036854775807, None]]),
    ("c_texts", "text[]", [["a,b", 'quo"te', "back\\slash", "", "NULL", None, "{}"]]),
    ("c_numerics", "numeric[]", [[Decimal("1.10"), Decimal("-9999999999999999999.5"), None]]),
    ("c_bools", "bool[]", [[True, False, None]]),
    ("c_floats", "float8[]", [[0.1, INFINITY, None]]),
    ("c_uuids", "uuid[]", [[UUID, None]]),
    ("c_dates", "date[]", [[dt.date(2024, 2, 29), None]]),
    ("c_stamps", "timestamp[]", [[dt.datetime(2024, 2, 29, 12, 30, 0, 1)]]),
    ("c_byteas", "bytea[]", [[b"\x00\xff", b""]]),
]

# Documents, whose parameters need a wrapper in some drivers.
DOCUMENTS = [
    ("c_json", "json", [DOCUMENT, [], "text", 1, None]),
    ("c_jsonb", "jsonb", [DOCUMENT, [], "text", 1]),
]

def create_table(name):
    columns = ", ".join(f"{column} {type}" for column, type, _ in SAMPLES + DOCUMENTS)
    return f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} (id int PRIMARY KEY, {columns})"

# What Python's types cannot hold: the server's value as text.
BEYOND = [
    ("'infinity'::date", "infinity"),
    ("'-infinity'::timestamptz", "-infinity"),
    ("'0044-03-15 BC'::date", "0044-03-15 BC"),
    ("'294276-12-31 23:59:59.999999'::timestamp", "294276-12-31 23:59:59.999999"),
    ("'1 year 2 mons -3 days 04:05:06.789'::interval", "1 year 2 mons -3 days +04:05:06.789"),
    ("'24:00'::time", "24:00:00"),
    ("'Infinity'::numeric", "Infinity"),
]
