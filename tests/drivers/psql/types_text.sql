-- Every type as literal and as result: extremes, infinities, BC, NULL, arrays.
\pset null '(null)'
SET TimeZone TO 'UTC';
SET client_min_messages TO warning;
DROP TABLE IF EXISTS psql_types;
RESET client_min_messages;
CREATE TABLE psql_types (id int PRIMARY KEY, c_bool bool, c_int2 int2, c_int4 int4, c_int8 int8, c_float4 float4,
    c_float8 float8, c_numeric numeric, c_scaled numeric(10, 2), c_text text, c_varchar varchar(20), c_char char(5),
    c_bytea bytea, c_uuid uuid, c_date date, c_time time, c_timetz timetz, c_timestamp timestamp,
    c_timestamptz timestamptz, c_interval interval, c_json json, c_jsonb jsonb, c_ints int[], c_texts text[],
    c_numerics numeric[], c_stamps timestamptz[]);
INSERT INTO psql_types VALUES
    (1, true, -32768, -2147483648, -9223372036854775808, '-Infinity', '5e-324', 'NaN', 99999999.99, '', '', 'ab', '\x',
    '00000000-0000-0000-0000-000000000000', '4713-01-01 BC', '00:00', '00:00+15:59', '4713-01-01 BC', '-infinity',
    '-178000000 years', '{"b": 1, "a": [1, null]}', '{"b": 1, "a": [1, null], "b": 2}', '{}', '{}', '{NaN}',
    '{-infinity}'),
    (2, false, 32767, 2147483647, 9223372036854775807, 'NaN', '1.7976931348623157e308',
    12345678901234567890.123456789012345678, -0.005, 'плов ☕ 𝄞 '' " \ tab' || chr(9), 'twenty characters ok', 'abcde',
    '\x00ff5c27', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'infinity', '24:00', '23:59:59.999999-15:59',
    '294276-12-31 23:59:59.999999', '2024-02-29 12:30:00.000001+05:30', '1 year 2 mons -3 days 04:05:06.789', '"text"',
    'null', '{{1,2},{3,NULL}}', ARRAY['a,b', 'quo"te', 'back\slash', '', 'NULL', NULL], '{1.10,-Infinity}',
    '{"2024-02-29 12:30+00",NULL}'),
    (3);
\x
SELECT * FROM psql_types ORDER BY id;
\x
SET DateStyle TO 'SQL, DMY';
SET IntervalStyle TO iso_8601;
SET bytea_output TO escape;
SET extra_float_digits TO 0;
SELECT c_date, c_timestamp, c_interval, c_bytea, c_float8 FROM psql_types WHERE id = 2;
RESET ALL;
SELECT c_int2 + 1::int2, c_int8 FROM psql_types WHERE id = 1;
DROP TABLE psql_types;
