"""Statements and results that several Python drivers share."""

# Statements that fail, with their SQLSTATEs. The table `failures (id int PRIMARY KEY, n int NOT NULL CHECK (n > 0))`
# has the row (1, 1).
FAILURES = [
    ("INSERT INTO failures VALUES (1, 1)", "23505"),
    ("INSERT INTO failures VALUES (2, NULL)", "23502"),
    ("INSERT INTO failures VALUES (2, -1)", "23514"),
    ("SELECT * FROM missing", "42P01"),
    ("SELECT missing FROM failures", "42703"),
    ("SELECT missing(1)", "42883"),
    ("SELECT 1 / 0", "22012"),
    ("SELEC 1", "42601"),
    ("SELECT 'x'::int", "22P02"),
    ("SELECT 2147483647 + 1", "22003"),
    ("SELECT 'abc'::varchar(2)::int", "22P02"),
    ("CREATE TABLE failures (id int)", "42P07"),
]
FAILURES_TABLE = """
    DROP TABLE IF EXISTS failures;
    CREATE TABLE failures (id int PRIMARY KEY, n int NOT NULL CHECK (n > 0));
    INSERT INTO failures VALUES (1, 1)
"""

# A table with all that a catalog tells about columns, keys and indexes.
CATALOG_TABLE = """
    DROP TABLE IF EXISTS described;
    CREATE TABLE described (id serial PRIMARY KEY, name varchar(30) NOT NULL DEFAULT 'none', price numeric(10, 2));
    CREATE UNIQUE INDEX described_name ON described (name)
"""
COLUMNS = """
    SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
    FROM pg_catalog.pg_attribute a
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = 'described'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
EXPECTED_COLUMNS = [
    ("id", "integer", True, "nextval('described_id_seq'::regclass)"),
    ("name", "character varying(30)", True, "'none'::character varying"),
    ("price", "numeric(10,2)", False, None),
]
INFORMATION = """
    SELECT column_name::text, data_type::text, is_nullable::text, character_maximum_length::int, numeric_precision::int
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'described'
    ORDER BY ordinal_position
"""
EXPECTED_INFORMATION = [
    ("id", "integer", "NO", None, 32),
    ("name", "character varying", "NO", 30, None),
    ("price", "numeric", "YES", None, 10),
]
