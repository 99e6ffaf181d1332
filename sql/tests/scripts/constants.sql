# Constant expressions that fail, fail before the first row, and also over no rows. PostgreSQL looks at the same ones.
create table e (a int primary key, b int);
----
CREATE TABLE

select 1/0 from e;
select a from e where 1/0 = 1;
select a from e where a = 1 and 1/0 = 1;
select a from e where a = 1/0;
select a from e where b = 1/0 or true;
select a from e where null and 1/0 = 1;
select a from e where a in (1, 1/0);
select 1/0 where false;
select 1/0 limit 0;
select a from e limit 1/0;
select a from e order by 1/0;
select count(1/0) from e;
select sqrt(-1) from e;
select 'x'::text::int from e;
select nullif(1/0, 1), greatest(1/0) from e;
select (1/0) is distinct from 1, not (1/0 = 1) from e;
values (1), (1/0);
----
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 2201F: cannot take square root of a negative number
ERROR 22P02: invalid input syntax for type integer: "x"
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero

insert into e values (1, 1/0);
insert into e select 1/0, 1 from e;
insert into e values (1, 1) on conflict (a) do update set b = 1/0;
update e set b = 1/0;
update e set b = 2 where b = 1/0;
delete from e where 1/0 = 1;
delete from e returning 1/0;
----
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero
ERROR 22012: division by zero

# Branches of CASE fail unless they are never taken.
select case when a = 1 then 1/0 else 1 end from e;
select case a when 1 then 1/0 end from e;
select case when true then 1 else 1/0 end, case when false then 1/0 else 2 end;
select coalesce(a, 1/0) from e;
select coalesce(1, 1/0);
----
ERROR 22012: division by zero
ERROR 22012: division by zero
case:int4|case:int4
1|2
ERROR 22012: division by zero
coalesce:int4
1

# Nobody looks behind a decisive constant.
select a from e where false and 1/0 = 1;
select a from e where a = 1 and false and b = 1/0;
select a from e where false and a = 1/0;
select count(*) from e where true or 1/0 = 1;
----
a:int4
a:int4
a:int4
count:int8
0

# What is no constant fails with its row.
insert into e values (1, 1), (2, 0);
select a from e where b = 0 or 1 / b > 0 order by a;
select 1 / b from e;
select 1 / b from e where a = 1;
----
INSERT 0 2
a:int4
1
2
ERROR 22012: division by zero
?column?:int4
1

\params 0
select a from e where a > 5 and b > 1 / $1;
----
ERROR 22012: division by zero

\params 0
select a from e where false and b > 1 / $1;
----
params int4
a:int4

# A constant part beside an operand that is NULL is evaluated, also where the rest waits for the session.
\params \N
select $1::interval + cast(make_date(1, 100, 0) as timestamptz);
----
ERROR 22008: date field value out of range: 1-100-00

\params \N
select $1::interval + cast(make_date(2024, b, 1) as timestamptz) from e where a = 2;
----
params interval
?column?:timestamptz
NULL

# NULL in the conjunction of WHERE is decided before the rows are read.
select a from e where (array[1], null) = (array_fill(b, array[2147483647]), null);
select a from e where null and 1 / b = 1;
select a from e where null and 1 / 0 = 1;
update e set b = b where 1 / b = 1 and null;
----
a:int4
a:int4
ERROR 22012: division by zero
UPDATE 0

\params 1
select a from e where (array[1], null) = (array_fill(b, array[2147483647]), array_append(array[2], $1));
----
params int4
a:int4

# Not those of queries of WITH that nothing reads.
with j as (select 1/0 from e) select 1;
with j as (select 1/0 from e) select * from j;
with j as (select 1/0), k as (select * from j) select 1;
with j as (select 1/0), k as (select * from j) select * from k;
with recursive j(n) as (select 1/0 union all select n from j) select 1;
with j as (select (select 1/0 from e) from e) select 1;
with j as (select 1/0 c from e) select (select c from j);
with j as (insert into e select 1/0, 1 from e returning a) select 1;
----
?column?:int4
1
ERROR 22012: division by zero
?column?:int4
1
ERROR 22012: division by zero
?column?:int4
1
?column?:int4
1
ERROR 22012: division by zero
ERROR 22012: division by zero

# Those of the keys of groups too.
create table no_rows (a int);
select count(*) from no_rows group by 1/0;
select 1/0, count(*) from no_rows group by 1;
----
CREATE TABLE
ERROR 22012: division by zero
ERROR 22012: division by zero
