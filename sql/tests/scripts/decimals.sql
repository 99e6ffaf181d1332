# Decimal literals are numeric.
create table t (id bigint primary key, n int);
insert into t values (9007199254740992, 1), (9007199254740993, 2), (9223372036854775807, 3), (-5, -5);
----
CREATE TABLE
INSERT 0 4

select id from t where id = 9007199254740993.0;
----
id:int8
9007199254740993

select id from t where id > 9007199254740992.5 order by id;
----
id:int8
9007199254740993
9223372036854775807

select id from t where 9007199254740992.5 > id and id > -4.5 order by id;
----
id:int8
9007199254740992

select id from t where id in (9007199254740993.0, 1.5, -5) order by id;
----
id:int8
-5
9007199254740993

select id from t where id not in (9007199254740993.0, 1.5) order by id;
----
id:int8
-5
9007199254740992
9223372036854775807

select id from t where id in (1.5);
----
id:int8

select count(*) from t where n not in (1.5) or n in (2.5);
----
count:int8
4

select id from t where id between 9007199254740992.1 and 9223372036854775807.5 order by id;
----
id:int8
9007199254740993
9223372036854775807

select id from t where id < 99999999999999999999 and id >= 9223372036854775807.0;
----
id:int8
9223372036854775807

select id from t where id is not distinct from 9007199254740993.0;
----
id:int8
9007199254740993

select n is distinct from 1.5, n is not distinct from 1.5, n is distinct from 2.0 from t where n = 2;
----
?column?:bool|?column?:bool|?column?:bool
t|f|f

select case id when 9007199254740993.0 then 'exact' else 'other' end from t where n in (1, 2) order by n;
----
case:text
other
exact

select 9007199254740993 = 9007199254740992.0, 9007199254740993.0 in (9007199254740992, 9007199254740993);
----
?column?:bool|?column?:bool
f|t

insert into t values (9007199254740995.4, 2.5) returning *;
----
id:int8|n:int4
9007199254740995|3
INSERT 0 1

select 9007199254740993.0::bigint, 2.5::int, -2.5::int, 9223372036854775807.4::bigint;
----
int8:int8|int4:int4|?column?:int4|int8:int8
9007199254740993|3|-3|9223372036854775807

select 9223372036854775807.5::bigint;
----
ERROR 22003: bigint out of range

explain select * from t where id >= 1.5 and id < 7.0;
----
Full Scan on t
  Filter: (((id)::numeric >= 1.5) AND ((id)::numeric < 7.0))

# Next to floats they are floats.
select 0.1::float8 + 0.2 = 0.3, 1.5 = 1.5, nullif(1, 2.5), nullif(3, 3.0);
----
?column?:bool|?column?:bool|nullif:numeric|nullif:numeric
f|t|1|NULL

# 25 * 0.1 was stored as 2.
create table d (id int primary key, n int, b bigint, f float8, s text);
insert into d values (1, 25, 25, 25, 'x');
----
CREATE TABLE
INSERT 0 1

update d set n = n * 0.1;
update d set n = 25 * 0.1;
insert into d (id, n) values (2, 25 * 0.1);
insert into d (id, n) select 2, 25 * 0.1;
select n * 0.5, 1 from d;
select n % 2.5 from d;
select 0.1 + 0.2;
select 2 ^ 0.5;
select '1' * 0.5;
select id from d where n * 0.5 > 1;
create table dd (a int default 25 * 0.1);
----
UPDATE 1
UPDATE 1
INSERT 0 1
ERROR 23505: duplicate key value violates unique constraint "d_pkey"
DETAIL: Key (id)=(2) already exists.
?column?:numeric|?column?:int4
1.5|1
1.5|1
?column?:numeric
0.5
0.5
?column?:numeric
0.3
?column?:numeric
1.4142135623730950
?column?:numeric
0.5
id:int4
1
2
CREATE TABLE

# Functions, aggregates and casts of numeric round as those of numeric.
select round(2.5);
select abs(n - 0.5) from d;
select sqrt(2.0);
select sum(0.1) from d;
select avg(n) * 2 from d;
select sum(b) / 2 from d;
update d set n = coalesce(null, 2.5);
update d set n = case when id = 1 then 2.5 else 1 end;
update d set n = greatest(2.5, 1);
update d set n = nullif(2.5, 1);
insert into d (id, n) select 2, avg(n) from d;
insert into d (id, n) values (2, 2.5) order by 1;
select coalesce(b, 0.5) from d;
update d set s = 1.50;
select 'x' || 1e3;
----
round:numeric
3
abs:numeric
2.5
2.5
sqrt:numeric
1.414213562373095
sum:numeric
0.2
?column?:numeric
6.0000000000000000
?column?:numeric
12.5000000000000000
UPDATE 2
UPDATE 2
UPDATE 2
UPDATE 2
ERROR 23505: duplicate key value violates unique constraint "d_pkey"
DETAIL: Key (id)=(2) already exists.
ERROR 23505: duplicate key value violates unique constraint "d_pkey"
DETAIL: Key (id)=(2) already exists.
coalesce:numeric
25
0.5
UPDATE 2
?column?:text
x1000

# A plain literal is exact in integers, floats and text. Next to floats it is one.
update d set n = -2.5, b = 2.5, f = 0.1, s = 1.5 returning n, b, f, s;
insert into d (id, n) values (2, 2.5), (3, 3.5) returning n;
insert into d (id, n) select 4, 4.5 returning n;
select f * 0.5, 0.5 * f, f + 1, f ^ 0.5 > 0.3, power(f, 0.5) > 0.3, round(f + 0.45) from d where id = 1;
select sum(b) + 1, sum(n) / 2, avg(n) > 0.5, avg(n)::float8 * 2 from d where id < 3;
select id from d where f = 0.1 and n < 0.5;
select 0.1::float8 + 0.2, round(2.5::float8);
----
n:int4|b:int8|f:float8|s:text
-3|3|0.1|1.5
-3|3|0.1|1.5
UPDATE 2
ERROR 23505: duplicate key value violates unique constraint "d_pkey"
DETAIL: Key (id)=(2) already exists.
n:int4
5
INSERT 0 1
?column?:float8|?column?:float8|?column?:float8|?column?:bool|?column?:bool|round:float8
0.05|0.05|1.1|t|t|1
?column?:numeric|?column?:int8|?column?:bool|?column?:float8
7|-3|f|-6
id:int4
1
2
?column?:float8|round:float8
0.30000000000000004|2

# Numbers compare with all their digits.
select 12345678901234567890 = 12345678901234567891;
select 0.1 = 0.10000000000000000001;
select id from t where id = coalesce(null, 9007199254740992.0);
select 1.5 in (0.5, 12345678901234567891);
select 12345678901234567890;
select mod(25, 0.3);
select mod(25.5, 2);
select mod(25, 0.3, 1);
select abs(1.5, 2);
----
?column?:bool
f
?column?:bool
f
id:int8
9007199254740992
?column?:bool
f
?column?:numeric
12345678901234567890
mod:numeric
0.1
mod:numeric
1.5
ERROR 42883: function mod(integer, numeric, integer) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
ERROR 42883: function abs(numeric, integer) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select 2.5 = 2.50, 0.1 < 0.2, 1.5 in (1.5, 2.5), 1e3 = 1000.0;
select pg_typeof(1.5), pg_typeof(12345678901234567890), pg_typeof(-1e3), pg_typeof(1.5::float8), pg_typeof(coalesce(1.5, 2.5));
select id from t where id < 12345678901234567890 and id > -4 order by id;
select f from d where f = 12345678901234567890;
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|t|t|t
pg_typeof:regtype|pg_typeof:regtype|pg_typeof:regtype|pg_typeof:regtype|pg_typeof:regtype
numeric|numeric|numeric|double precision|numeric
id:int8
9007199254740992
9007199254740993
9007199254740995
9223372036854775807
f:float8

# A literal keeps its digits where it is no literal any more. It was rounded silently.
select coalesce(12345678901234567890, 1.5);
select greatest(12345678901234567890, 1.5);
select least(1, 0.10000000000000000001);
select case when true then 9007199254740993.0 else 1 end;
select max(12345678901234567890);
select min(0.10000000000000000001);
select nullif(12345678901234567890, 1);
select nullif(9007199254740993, 2.5);
values (12345678901234567890);
values (1.5), (9007199254740993.0) order by 1;
select coalesce(null, 0.10000000000000000001) = 0.1;
select coalesce(null, 0.10000000000000000001) in (0.1);
select coalesce(0.10000000000000000001, 1) > 0.1;
select 9007199254740993 in (coalesce(null, 1.5), 2.5);
select -(+12345678901234567890);
insert into d (id, f) values (9, coalesce(0.10000000000000000001, 0.5));
----
coalesce:numeric
12345678901234567890
greatest:numeric
12345678901234567890
least:numeric
0.10000000000000000001
case:numeric
9007199254740993.0
max:numeric
12345678901234567890
min:numeric
0.10000000000000000001
nullif:numeric
12345678901234567890
nullif:numeric
9007199254740993
column1:numeric
12345678901234567890
column1:numeric
1.5
9007199254740993.0
?column?:bool
f
?column?:bool
f
?column?:bool
t
?column?:bool
f
?column?:numeric
-12345678901234567890
INSERT 0 1

\params 0.1
select $1 = 0.10000000000000000001;
----
params numeric
?column?:bool
f

\params 0.1
select $1 = 0.1, pg_typeof($1);
----
params numeric
?column?:bool|pg_typeof:regtype
t|numeric

# A string next to a decimal number is read as one, not as a float.
select '0.10000000000000000001' = 0.1;
select 0.1 in ('0.10000000000000000001');
select '0.10000000000000000001' in (0.1);
select 0.1 between '0.10000000000000000001' and 1;
select coalesce(null, '0.10000000000000000001', 0.5);
select nullif('0.10000000000000000001', 0.1);
select 'abc' = 0.1;
select coalesce('abc', 0.1);
select '1e400' = 0.1;
select '1.5' = 1.5, 1.5 = ' +1.50 ', '1.5' in (1.5, 2), 1.5 in ('2', '1.5'), coalesce(null, '0.5', 1.5), 'NaN' = 0.5;
select nullif('1', 0.5), pg_typeof(nullif('1', 0.5));
----
?column?:bool
f
?column?:bool
f
?column?:bool
f
?column?:bool
f
coalesce:numeric
0.10000000000000000001
nullif:numeric
0.10000000000000000001
ERROR 22P02: invalid input syntax for type numeric: "abc" [at 8]
ERROR 22P02: invalid input syntax for type numeric: "abc" [at 17]
?column?:bool
f
?column?:bool|?column?:bool|?column?:bool|?column?:bool|coalesce:numeric|?column?:bool
t|t|t|t|0.5|f
nullif:numeric|pg_typeof:regtype
1|numeric

# Where PostgreSQL makes a float of it, it is one. So it is next to integers.
select 0.10000000000000000001::float8, 12345678901234567890::float8, coalesce(f, 0.10000000000000000001) from d where id = 1;
select case when f > 0 then 0.10000000000000000001 else f end, f = 0.10000000000000000001 from d where id = 1;
select f * 3.14159265358979323846 from d where id = 1;
insert into d (id, f) values (5, 0.10000000000000000001), (6, 12345678901234567890) returning f;
update d set f = 3.14159265358979323846 where id = 5 returning f;
select 1 in (12345678901234567890, 1), 1 < 12345678901234567890, nullif(1, 12345678901234567890);
select coalesce(1.5, 2), greatest(1.5, 2), case when true then 1.5 else 2 end, max(1.5), min(0.1), nullif(1.5, 2);
values (1.5), (2);
----
float8:float8|float8:float8|coalesce:float8
0.1|1.2345678901234567e+19|0.1
f:float8|?column?:bool
0.1|t
?column?:float8
0.3141592653589793
f:float8
0.1
1.2345678901234567e+19
INSERT 0 2
f:float8
3.141592653589793
UPDATE 1
?column?:bool|?column?:bool|nullif:numeric
t|t|1
coalesce:numeric|greatest:numeric|case:numeric|max:numeric|min:numeric|nullif:numeric
1.5|2|1.5|1.5|0.1|1.5
column1:numeric
1.5
2

# There is no negative zero. A number may be beyond the floats.
select -0.0, -(0.0), - coalesce(0.0, 1), -(+0.0), -(0.0::float8);
select 1e400;
select 1e-400;
select id from t where id < 1e400;
----
?column?:numeric|?column?:numeric|?column?:numeric|?column?:numeric|?column?:float8
0.0|0.0|0.0|0.0|-0
?column?:numeric
10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
?column?:numeric
0.0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001
id:int8
-5
9007199254740992
9007199254740993
9007199254740995
9223372036854775807

# What PostgreSQL has for numeric, and what it has not.
select round(2.567, 2);
select round('2.567', 2);
select round(5, 2);
select trunc(2.567, 1);
select div(7, 2);
select log(100.0);
select log(100::float8);
select gcd(12, 8.0);
select stddev(1.5);
select round(2.567::float8, 2);
select round(2.5, 2.0);
select div(7::float8, 2);
----
round:numeric
2.57
round:numeric
2.57
round:numeric
5.00
trunc:numeric
2.5
div:numeric
3
log:numeric
2.0000000000000000
log:float8
2
gcd:numeric
4.0
stddev:numeric
NULL
ERROR 42883: function round(double precision, integer) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
ERROR 42883: function round(numeric, numeric) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
ERROR 42883: function div(double precision, integer) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

# Errors name the type.
select not 1.5;
select 1.5::bool;
select ~0.1;
select 0.1 || 1;
select 1.5 = true;
select coalesce(1.5, true);
select lower(1.5);
select case when 1.5 then 1 end;
select 1.5 collate "C";
create table e (b bool default 1.5);
update d set n = true;
insert into d (id, s) values (7, 1.5::float8) returning s;
----
ERROR 42804: argument of NOT must be type boolean, not type numeric [at 12]
ERROR 42846: cannot cast type numeric to boolean [at 11]
ERROR 42883: operator does not exist: ~ numeric [at 8]
HINT: No operator matches the given name and argument type. You might need to add an explicit type cast.
ERROR 42883: operator does not exist: numeric || integer [at 12]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
ERROR 42883: operator does not exist: numeric = boolean [at 12]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
ERROR 42804: COALESCE types numeric and boolean cannot be matched [at 22]
ERROR 42883: function lower(numeric) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
ERROR 42804: argument of CASE/WHEN must be type boolean, not type numeric [at 18]
ERROR 42804: collations are not supported by type numeric [at 12]
ERROR 42804: column "b" is of type boolean but default expression is of type numeric
HINT: You will need to rewrite or cast the expression.
ERROR 42804: column "n" is of type integer but expression is of type boolean [at 18]
HINT: You will need to rewrite or cast the expression.
s:text
1.5
INSERT 0 1

select scale(round(1.5, 2500)), scale(trunc(1.5, 20000)), round(1.5, -200000);
----
scale:int4|scale:int4|round:numeric
2500|16383|0

# The detail of a duplicate has the values of the row.
create table amounts (a numeric primary key, b numeric unique, j jsonb unique);
insert into amounts values (1, 2, '{"a": 1.0}');
insert into amounts values (1.00, 3, '3');
insert into amounts values (4, 2.000, '4');
insert into amounts values (5, 5, '{"a": 1.00}');
insert into amounts values (5, 5, '5'), (5.0, 6, '6');
drop table amounts;
----
CREATE TABLE
INSERT 0 1
ERROR 23505: duplicate key value violates unique constraint "amounts_pkey"
DETAIL: Key (a)=(1.00) already exists.
ERROR 23505: duplicate key value violates unique constraint "amounts_b_key"
DETAIL: Key (b)=(2.000) already exists.
ERROR 23505: duplicate key value violates unique constraint "amounts_j_key"
DETAIL: Key (j)=({"a": 1.00}) already exists.
ERROR 23505: duplicate key value violates unique constraint "amounts_pkey"
DETAIL: Key (a)=(5.0) already exists.
DROP TABLE

# Keys that are equal but not the same: the message has those of the new row.
create table zeros (a float8 primary key, b numeric unique);
insert into zeros values ('-0', 1), ('0', 2);
insert into zeros values ('0', 1), ('-0', 2);
insert into zeros values (1, 0.000), (2, 0);
insert into zeros values (1, 0), (2, 0.000);
drop table zeros;
----
CREATE TABLE
ERROR 23505: duplicate key value violates unique constraint "zeros_pkey"
DETAIL: Key (a)=(0) already exists.
ERROR 23505: duplicate key value violates unique constraint "zeros_pkey"
DETAIL: Key (a)=(-0) already exists.
ERROR 23505: duplicate key value violates unique constraint "zeros_b_key"
DETAIL: Key (b)=(0) already exists.
ERROR 23505: duplicate key value violates unique constraint "zeros_b_key"
DETAIL: Key (b)=(0.000) already exists.
DROP TABLE
