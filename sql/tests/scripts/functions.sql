# Functions of text, numbers and bytea, and the names of their columns.
select length('äbc'), char_length('abc'), octet_length('ä'), length('\x0102'::bytea), length('');
----
length:int4|char_length:int4|octet_length:int4|length:int4|length:int4
3|3|2|2|0

select lower('AbC'), upper('aBc'), lower('ÄÖ'), reverse('abc');
----
lower:text|upper:text|lower:text|reverse:text
abc|ABC|äö|cba

select substr('abcdef', 2), substr('abcdef', 2, 3), substring('abcdef' from 2 for 2), substring('abcdef', 0, 3),
substring('abc' for 2);
----
substr:text|substr:text|substring:text|substring:text|substring:text
bcdef|bcd|bc|ab|ab

select substr('abc', 1, -1);
----
ERROR 22011: negative substring length not allowed

select substr('abc', -2, 5), substr('abc', 10), substr('\x010203'::bytea, 2, 1);
----
substr:text|substr:text|substr:bytea
ab||\x02

select trim('  a '), trim(both 'x' from 'xxaxx'), ltrim('  a'), rtrim('a  '), btrim('xyaxy', 'xy'),
trim(leading from '  b '), trim(trailing 'b' from 'abb');
----
btrim:text|btrim:text|ltrim:text|rtrim:text|btrim:text|ltrim:text|rtrim:text
a|a|a|a|a|b |a

select concat('a', 1, null, true, 2.5::float8), concat_ws('-', 'a', null, 'b'), concat_ws(null, 'a');
----
concat:text|concat_ws:text|concat_ws:text
a1t2.5|a-b|NULL

select abs(-5), abs(-5.5::float8), abs(-5::int8), mod(7, 3), mod(-7, 3), sign(-2.0::float8);
----
abs:int4|abs:float8|abs:int8|mod:int4|mod:int4|sign:float8
5|5.5|5|1|-1|-1

select abs(-2147483648);
----
ERROR 22003: integer out of range

select mod(1, 0);
----
ERROR 22012: division by zero

select round(2.5::float8), round(3.5::float8), floor(-1.5::float8), ceil(1.2::float8), ceiling(1.2::float8),
trunc(-1.7::float8), round(7), floor(3);
----
round:float8|round:float8|floor:float8|ceil:float8|ceiling:float8|trunc:float8|round:float8|floor:float8
2|4|-2|2|2|-1|7|3

select sqrt(4), power(2, 3), exp(0), ln(1);
----
sqrt:float8|power:float8|exp:float8|ln:float8
2|8|1|0

select sqrt(-1);
----
ERROR 2201F: cannot take square root of a negative number

select ln(0);
----
ERROR 2201E: cannot take logarithm of zero

select power(0::float8, -1::float8);
----
ERROR 2201F: zero raised to a negative power is undefined

select left('abcdef', 2), left('abcdef', -2), right('abcdef', 2), right('abcdef', -2), left('a', 5);
----
left:text|left:text|right:text|right:text|left:text
ab|abcd|ef|cdef|a

select repeat('ab', 3), repeat('x', -1), replace('aXbX', 'X', '--'), replace('abc', '', 'x');
----
repeat:text|repeat:text|replace:text|replace:text
ababab||a--b--|abc

select strpos('abc', 'c'), position('b' in 'abc'), strpos('abc', 'z'), strpos('abc', '');
----
strpos:int4|position:int4|strpos:int4|strpos:int4
3|2|0|1

select lpad('a', 3), lpad('a', 3, 'xy'), rpad('abc', 2), rpad('a', 4, 'xy'), lpad('a', -1);
----
lpad:text|lpad:text|rpad:text|rpad:text|lpad:text
  a|xya|ab|axyx|

select starts_with('abc', 'ab'), ascii('a'), ascii(''), chr(228);
----
starts_with:bool|ascii:int4|ascii:int4|chr:text
t|97|0|ä

select chr(0);
----
ERROR 54000: null character not permitted

select current_schema, current_schema();
----
current_schema:name|current_schema:name
public|public

select nosuch(1, 'a');
----
ERROR 42883: function nosuch(integer, unknown) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select length(1);
----
ERROR 42883: function length(integer) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select lower(1);
----
ERROR 42883: function lower(integer) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select substr('a', 'b');
----
ERROR 22P02: invalid input syntax for type integer: "b" [at 20]

select abs('x');
----
ERROR 22P02: invalid input syntax for type double precision: "x" [at 12]

select abs('-5');
----
abs:float8
5

select pg_catalog.lower('A');
----
lower:text
a

select nosuchschema.lower('A');
----
ERROR 3F000: schema "nosuchschema" does not exist [at 8]

select lower(distinct 'a');
----
ERROR 42809: DISTINCT specified, but lower is not an aggregate function [at 8]

select lower('a', 'b');
----
ERROR 42883: function lower(unknown, unknown) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select length(null), lower(null), substr(null, 1);
----
length:int4|lower:text|substr:text
NULL|NULL|NULL

select coalesce(1) as c, nullif(1, 2) n, greatest(1, 2), lower('A');
----
c:int4|n:int4|greatest:int4|lower:text
1|1|2|a

select 1 as "Two Words", 2 as x, 3 as X, 4 "y";
----
Two Words:int4|x:int4|x:int4|y:int4
1|2|3|4

select true, 'a'::text, 1::int4, cast(1 as int8), '2024-01-01'::timestamptz, case when true then 1 end, -1, 1 + 1;
----
?column?:bool|text:text|int4:int4|int8:int8|timestamptz:timestamptz|case:int4|?column?:int4|?column?:int4
t|a|1|1|2024-01-01 00:00:00+00|1|-1|2

# Large results are computed at execution.
select length(repeat('x', 10000)), concat(true, false, null, 1 = 1), nullif('5', 5), nullif('a', 'b');
----
length:int4|concat:text|nullif:int4|nullif:text
10000|tft|NULL|a

# Letters map one to one, as lc_ctype C.UTF-8 says.
select lower('ÄÉΣ ΟΔΟΣ İI'), upper('straße ŉ ﬁ ᾀ ÿ');
select 'STRASSE' ilike 'straße', 'ÄÖ' ilike 'äö';
----
lower:text|upper:text
äéσ οδοσ ii|STRAßE ŉ ﬁ ᾈ Ÿ
?column?:bool|?column?:bool
f|t

# The time of the transaction, rounded.
select current_timestamp(3) > now(), current_timestamp(0) > now(), current_timestamp(6) = current_timestamp;
select current_timestamp(3);
select current_timestamp(0);
select current_timestamp(7) is null;
select current_timestamp(a) from (values (1)) t (a);
select current_timestamp();
select now(3);
----
?column?:bool|?column?:bool|?column?:bool
t|t|t
current_timestamp:timestamptz
2024-05-05 07:08:09.501+00
current_timestamp:timestamptz
2024-05-05 07:08:10+00
WARNING 22023: TIMESTAMP(7) WITH TIME ZONE precision reduced to maximum allowed, 6
?column?:bool
f
ERROR 42601: syntax error at or near "a" [at 26]
ERROR 42601: syntax error at or near ")" [at 26]
ERROR 42883: function now(integer) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select pg_typeof(1), pg_typeof(1::bigint), pg_typeof('x'), pg_typeof(null), pg_typeof(now()), pg_typeof('x'::varchar(3));
select pg_typeof(pg_advisory_unlock_all()), pg_backend_pid() > 0, pg_backend_pid() = pg_backend_pid();
select pg_advisory_unlock_all(1);
select current_setting(1);
----
pg_typeof:regtype|pg_typeof:regtype|pg_typeof:regtype|pg_typeof:regtype|pg_typeof:regtype|pg_typeof:regtype
integer|bigint|unknown|unknown|timestamp with time zone|character varying
pg_typeof:regtype|?column?:bool|?column?:bool
void|t|t
ERROR 42883: function pg_advisory_unlock_all(integer) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
ERROR 42883: function current_setting(integer) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

# Polymorphic arguments need a type that all convert to, and arrays of it.
select array_prepend(5::oid, '{1.5}'::float8[]);
----
ERROR 42883: function array_prepend(oid, double precision[]) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select array_append(null, '{1}'::int[]);
----
ERROR 42704: could not find array type for data type integer[]

# DISTINCT makes a literal a text.
select pg_typeof(max(v)), count(distinct 'x') from (values (1), (2)) t(v);
----
pg_typeof:regtype|count:int8
integer|1

# The literal of an array is read as a whole before its elements.
select '{x,1'::int[];
----
ERROR 22P02: malformed array literal: "{x,1" [at 8]
DETAIL: Unexpected end of input.

select '{1}'::json[] is distinct from '{}'::json[];
----
?column?:bool
t

select '{1}'::json[] is distinct from '{2}'::json[];
----
ERROR 42883: could not identify an equality operator for type json

select current_role = current_user, pg_typeof(current_role), current_role is null;
select "current_role" from (select 1 "current_role") q;
select make_interval(days := 5), make_interval(days => 5, hours := 2);
select make_interval(days := 5, 3);
select (date '2020-01-01', date '2020-02-01') overlaps (date '2020-01-15', date '2020-03-01');
select N'x', pg_typeof(N'x'), n'abc ' || 'd', N'x'::text;
----
?column?:bool|pg_typeof:regtype|?column?:bool
t|name|f
current_role:int4
1
make_interval:interval|make_interval:interval
5 days|5 days 02:00:00
ERROR 42601: positional argument cannot follow named argument [at 33]
overlaps:bool
t
bpchar:bpchar|pg_typeof:regtype|?column?:text|text:text
x|character|abcd|x

# VARIADIC in a call of a function that collects nothing.
select upper(variadic 'a'), jsonb_delete('{"a":1}', variadic 'a'::text), jsonb_delete('{"a":1}', variadic array['a']), pg_typeof(variadic 1);
select count(variadic 1), abs(variadic array[1]);
select concat(variadic 'a');
select lower('A' order by 1);
select coalesce(1 order by 1);
select generate_series(1, 2 order by 1);
----
upper:text|jsonb_delete:jsonb|jsonb_delete:jsonb|pg_typeof:regtype
A|{}|{}|integer
ERROR 42883: function abs(integer[]) does not exist [at 27]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
ERROR 0A000: VARIADIC of function concat is not supported yet [at 8]
ERROR 42809: ORDER BY specified, but lower is not an aggregate function [at 8]
ERROR 42809: ORDER BY specified, but coalesce is not an aggregate function [at 8]
ERROR 42809: ORDER BY specified, but generate_series is not an aggregate function [at 8]
