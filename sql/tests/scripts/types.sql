# Literals and casts of every type: accepted spellings, output, errors.
select 't'::bool, 'YES'::bool, 'of'::bool, '1'::boolean;
----
bool:bool|bool:bool|bool:bool|bool:bool
t|t|f|t

select 'maybe'::bool;
----
ERROR 22P02: invalid input syntax for type boolean: "maybe" [at 8]

select 'x'::int;
----
ERROR 22P02: invalid input syntax for type integer: "x" [at 8]

select ' 12 '::int, '-7'::smallint, '+9'::bigint;
----
int4:int4|int2:int2|int8:int8
12|-7|9

select '2147483648'::int;
----
ERROR 22003: value "2147483648" is out of range for type integer [at 8]

select '32768'::int2;
----
ERROR 22003: value "32768" is out of range for type smallint [at 8]

select '9223372036854775808'::int8;
----
ERROR 22003: value "9223372036854775808" is out of range for type bigint [at 8]

select 1, 2147483647, 2147483648, -2147483648, 9223372036854775807, -9223372036854775808;
----
?column?:int4|?column?:int4|?column?:int8|?column?:int4|?column?:int8|?column?:int8
1|2147483647|2147483648|-2147483648|9223372036854775807|-9223372036854775808

select 2147483648::int;
----
ERROR 22003: integer out of range

select 32768::smallint;
----
ERROR 22003: smallint out of range

select (-32768)::int2, -32768::int2;
----
ERROR 22003: smallint out of range

select 3000000000::int8::int4;
----
ERROR 22003: integer out of range

select 2.5::float8::int, 3.5::float8::int, -2.5::float8::int;
----
int4:int4|int4:int4|?column?:int4
2|4|-2

select 2.5::int, 3.5::int, -2.5::int, 0.5::int8;
----
int4:int4|int4:int4|?column?:int4|int8:int8
3|4|-3|1

select 1e10::float8::int;
----
ERROR 22003: integer out of range

select 'NaN'::float8::int;
----
ERROR 22003: integer out of range

select '1e400'::float8;
----
ERROR 22003: "1e400" is out of range for type double precision [at 8]

select '1e-400'::float8;
----
ERROR 22003: "1e-400" is out of range for type double precision [at 8]

select 'abc'::float8;
----
ERROR 22P02: invalid input syntax for type double precision: "abc" [at 8]

select 1e15::float8, 1e14::float8, 0.0001::float8, 0.00001::float8, 1234567890123456789::float8;
----
float8:float8|float8:float8|float8:float8|float8:float8|float8:float8
1e+15|100000000000000|0.0001|1e-05|1.2345678901234568e+18

select '-0'::float8, 'infinity'::float8, '-inf'::float8, 'nan'::float8;
----
float8:float8|float8:float8|float8:float8|float8:float8
-0|Infinity|-Infinity|NaN

select 0.1::float8 + 0.2::float8;
----
?column?:float8
0.30000000000000004

select 1::bool, 0::bool, true::int, false::int4;
----
bool:bool|bool:bool|int4:int4|int4:int4
t|f|1|0

select true::int8;
----
ERROR 42846: cannot cast type boolean to bigint [at 12]

select 1::int8::bool;
----
ERROR 42846: cannot cast type bigint to boolean [at 15]

select true::text, false::varchar, 12::text, 1.5::float8::text;
----
text:text|varchar:varchar|text:text|text:text
true|false|12|1.5

select 'abcdef'::varchar(3), 'äöüß'::varchar(2), 'ab'::varchar(5);
----
varchar:varchar|varchar:varchar|varchar:varchar
abc|äö|ab

select 'a'::varchar(0);
----
ERROR 22023: length for type varchar must be at least 1 [at 13]

select 'a'::varchar(10485761);
----
ERROR 22023: length for type varchar cannot exceed 10485760 [at 13]

select '\xDEADBEEF'::bytea, 'a\\b\001'::bytea, ''::bytea;
----
bytea:bytea|bytea:bytea|bytea:bytea
\xdeadbeef|\x615c6201|\x

select '\xabc'::bytea;
----
ERROR 22023: invalid hexadecimal data: odd number of digits [at 8]

select '\xzz'::bytea;
----
ERROR 22023: invalid hexadecimal digit: "z" [at 8]

select '\9'::bytea;
----
ERROR 22P02: invalid input syntax for type bytea [at 8]

select 'abc'::bytea::text;
----
text:text
\x616263

select '12'::text::int, 'x'::text::int;
----
ERROR 22P02: invalid input syntax for type integer: "x"

select 1::bytea;
----
ERROR 42846: cannot cast type integer to bytea [at 9]

select '2024-03-01 12:34:56.789+02'::timestamptz, '2024-03-01'::timestamptz, 'epoch'::timestamptz;
----
timestamptz:timestamptz|timestamptz:timestamptz|timestamptz:timestamptz
2024-03-01 10:34:56.789+00|2024-03-01 00:00:00+00|1970-01-01 00:00:00+00

select 'infinity'::timestamptz, '-infinity'::timestamptz;
----
timestamptz:timestamptz|timestamptz:timestamptz
infinity|-infinity

select '2024-13-01'::timestamptz;
----
ERROR 22008: date/time field value out of range: "2024-13-01" [at 8]
HINT: Perhaps you need a different "datestyle" setting.

select '2024-02-30'::timestamptz;
----
ERROR 22008: date/time field value out of range: "2024-02-30" [at 8]

# Other orders than year, month, day: not supported, docs/compatibility.md.
select '13/05/2024'::timestamptz;
----
ERROR 22008: date/time field value out of range: "13/05/2024" [at 8]
HINT: Perhaps you need a different "datestyle" setting.

select 'tomorrowish'::timestamptz;
----
ERROR 22007: invalid input syntax for type timestamp with time zone: "tomorrowish" [at 8]

select '2024-01-01 25:00:00'::timestamptz;
----
ERROR 22008: date/time field value out of range: "2024-01-01 25:00:00" [at 8]

select '2024-01-01 00:00:00+16'::timestamptz;
----
ERROR 22009: time zone displacement out of range: "2024-01-01 00:00:00+16" [at 8]

select '0044-03-15 BC'::timestamptz, '294276-12-31'::timestamptz;
----
timestamptz:timestamptz|timestamptz:timestamptz
0044-03-15 00:00:00+00 BC|294276-12-31 00:00:00+00

select '294277-01-01'::timestamptz;
----
ERROR 22008: timestamp out of range: "294277-01-01" [at 8]

select '2024-03-01T12:34:56Z'::timestamptz, '20240301 123456'::timestamptz, '20240301T1234'::timestamptz;
----
timestamptz:timestamptz|timestamptz:timestamptz|timestamptz:timestamptz
2024-03-01 12:34:56+00|2024-03-01 12:34:56+00|2024-03-01 12:34:00+00

select '2024-07-01 12:00 Europe/Berlin'::timestamptz, '2024-07-01 12:00 UTC'::timestamptz;
----
timestamptz:timestamptz|timestamptz:timestamptz
2024-07-01 10:00:00+00|2024-07-01 12:00:00+00

select '2024-03-01 12:34:56.1234567'::timestamptz;
----
timestamptz:timestamptz
2024-03-01 12:34:56.123457+00

select timestamptz '2024-03-01 00:00:00+00' = '2024-03-01 01:00:00+01';
----
?column?:bool
t

select '2024-03-01'::timestamptz::text;
----
text:text
2024-03-01 00:00:00+00

select date '2024-01-01' is null;
----
?column?:bool
f

select null, null::int, null::text;
----
?column?:text|int4:int4|text:text
NULL|NULL|NULL

select cast('5' as integer), cast(5 as text), int '7', float8 '1.5', bool 't';
----
int4:int4|text:text|int4:int4|float8:float8|bool:bool
5|5|7|1.5|t

select 'a'::nosuchtype;
----
ERROR 42704: type "nosuchtype" does not exist [at 13]

select cast(1 as nosuchtype);
----
ERROR 42704: type "nosuchtype" does not exist [at 18]

select E'a\tb\\n', 'it''s', $$dollar$$, $x$a$$b$x$;
----
?column?:text|?column?:text|?column?:text|?column?:text
a	b\n|it's|dollar|a$$b

select '1'::int4 + '2'::int8;
----
?column?:int8
3

select 'Infinity'::float8 > 1, 'NaN'::float8 > 'Infinity'::float8, 'NaN'::float8 = 'NaN'::float8;
----
?column?:bool|?column?:bool|?column?:bool
t|t|t

select '0x10'::float8, ' -0X1.8p3'::float4, '0x1p-1074'::float8, '0x1.00000000000008p0'::float8;
----
float8:float8|float4:float4|float8:float8|float8:float8
16|-12|5e-324|1

select '0x1p1024'::float8;
----
ERROR 22003: "0x1p1024" is out of range for type double precision [at 8]

select '0x1p-150'::float4;
----
ERROR 22003: "0x1p-150" is out of range for type real [at 8]

select '0x1p'::float8;
----
ERROR 22P02: invalid input syntax for type double precision: "0x1p" [at 8]

# The grammar checks the precision of float: before anything is looked up, and in a transaction that has failed.
select nope, 1::float(54);
----
ERROR 22023: precision for type float must be less than 54 bits [at 23]

select 1::float(0), nope;
----
ERROR 22023: precision for type float must be at least 1 bit [at 17]

selec 1::float(54);
----
ERROR 42601: syntax error at or near "selec" [at 1]

select 1::float(54) selec from;
----
ERROR 22023: precision for type float must be less than 54 bits [at 17]

begin;
----
BEGIN

select nope;
----
ERROR 42703: column "nope" does not exist [at 8]

select 1::float(0);
----
ERROR 22023: precision for type float must be at least 1 bit [at 17]

select 1::float(1);
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

rollback;
----
ROLLBACK

select pg_typeof(1::float(24)), pg_typeof(1::float(25)), pg_typeof(1::float(53));
----
pg_typeof:regtype|pg_typeof:regtype|pg_typeof:regtype
real|double precision|double precision

# A literal of type character keeps its length. In a cast, or of a column, the type has one character.
select char 'abc', character 'abc', char(2) 'abc', 'abc'::char, cast('abc' as character);
----
bpchar:bpchar|bpchar:bpchar|bpchar:bpchar|bpchar:bpchar|bpchar:bpchar
abc|abc|ab|a|a

# Parameters of EXECUTE that are of type character.
create table ec (id int primary key, c char(4) unique);
create index on ec ((c || '!'));
prepare ec1 as insert into ec values ($1, $2) returning c, c || '';
execute ec1 (1, 'a');
select octet_length(c), to_json(c) from ec;
prepare ec2 as select id from ec where c = $1;
execute ec2 ('a');
prepare ec3 (bpchar) as select $1 = 'a', case $1 when 'a' then 1 end, $1 in ('b', 'a'), $1::char(3) || 'x';
execute ec3 ('a ');
prepare ec4 (char(3)[], bpchar) as select $1, $2 = any ($1);
execute ec4 ('{a,b}', 'b');
----
CREATE TABLE
CREATE INDEX
PREPARE
c:bpchar|?column?:text
a   |a
INSERT 0 1
octet_length:int4|to_json:json
4|"a   "
PREPARE
id:int4
1
PREPARE
?column?:bool|case:int4|?column?:bool|?column?:text
t|1|t|ax
PREPARE
?column?:_bpchar|?column?:bool
{a,b}|t
