# Inferred parameter types, and parameter values.
create table t (id int primary key, s int2, n int8, f float8, v varchar(3), ok bool, at timestamptz, raw bytea);
----
CREATE TABLE

\params 1 2 3 4.5 abc t 2024-01-01 \x01
insert into t values ($1, $2, $3, $4, $5, $6, $7, $8);
----
params int4 int2 int8 float8 varchar bool timestamptz bytea
INSERT 0 1

\params 5
update t set n = n + $1 returning n;
----
params int8
n:int8
8
UPDATE 1

\params 5
select $1 + 1;
----
params int4
?column?:int4
6

\params abc
select $1;
----
params text
?column?:text
abc

\params 1 x
select $1::int, $2::text;
----
params int4 text
int4:int4|text:text
1|x

\params 2 1
select id from t limit $1 offset $2;
----
params int8 int8
id:int4

\params -1
select id from t limit $1;
----
ERROR 2201W: LIMIT must not be negative

\params \N
select id from t limit $1;
----
params int8
id:int4
1

\params x
select id from t where id = $1;
----
ERROR 22P02: invalid input syntax for type integer: "x"

\params toolong
insert into t (id, v) values (2, $1);
----
ERROR 22001: value too long for type character varying(3)

\params 1 5
select id from t where id between $1 and $2;
----
params int4 int4
id:int4
1

\params 7
select coalesce($1, 1);
----
params int4
coalesce:int4
7

\params a b
select $1 || $2;
----
params text text
?column?:text
ab

\params 1
select $1 is null or id = $1 from t;
----
ERROR 42P08: could not determine data type of parameter $1 [at 8]

select $1 is null;
----
ERROR 42P02: there is no parameter $1 [at 8]

select $2::int;
----
ERROR 42P02: there is no parameter $2 [at 8]

select $0;
----
ERROR 42P02: there is no parameter $0 [at 8]

\params 2024-01-01
select at = $1 from t;
----
params timestamptz
?column?:bool
t

\params now
select at < $1 from t;
----
params timestamptz
?column?:bool
t

\params 1
select case when true then $1 else 2 end;
----
params int4
case:int4
1

\params 3 4
select * from (values ($1), ($2)) x;
----
params text text
column1:text
3
4

# A parameter keeps the type of its first use.
\params 7
select $1 between 1 and 2.5;
----
params int4
?column?:bool
f

\params 2
select $1 between 1 and 2.5;
----
params int4
?column?:bool
t

\params 7
select nullif($1, 0);
----
params int4
nullif:int4
7

\params 1
select $1 in (1, 2.5);
----
params numeric
?column?:bool
t

\params 7
select $1 + 1, $1 + 2.5, $1::bigint;
----
params int4
?column?:int4|?column?:numeric|int8:int8
8|9.5|7

\params a
select $1 = 'a', $1 || 'b';
----
params text
?column?:bool|?column?:text
t|ab

\params 5
select coalesce($1, 1), greatest($1, 2.5);
----
params int4
coalesce:int4|greatest:numeric
5|5

\params 5
select case $1 when 1 then 'a' when 5.5 then 'b' else 'c' end;
----
ERROR 42883: operator does not exist: text = integer [at 16]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.

\params 5
select $1 = 1 or $1 = 'x';
----
ERROR 22P02: invalid input syntax for type integer: "x" [at 23]
