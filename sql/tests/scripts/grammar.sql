# A word before ON CONFLICT is no label. Keywords are labels without AS as PostgreSQL has it.
create table g (id int primary key, a int);
insert into g select 1 on conflict do nothing;
insert into g select 1, 5 on conflict (id) do update set a = excluded.a;
insert into g select 2 union select 1 on conflict (id) do update set a = 7;
insert into g select unnest(array[1, 2, 3]) on conflict do nothing;
insert into g select id + 1 from g on conflict on constraint g_pkey do update set a = g.id returning id;
select * from g order by id;
select 1 select, 2 values, 3 end, 4 lateral, 5 view, 6 minus, 7 cluster, 8 explain, 9 sort, 10 table;
select 1 as on, 2 as year, 3 as limit;
select 1 year;
select 1 on;
select 1 filter;
select 1 precision;
select 1 with;
----
CREATE TABLE
INSERT 0 1
INSERT 0 1
INSERT 0 2
INSERT 0 1
id:int4
2
3
4
INSERT 0 3
id:int4|a:int4
1|7
2|2
3|3
4|NULL
select:int4|values:int4|end:int4|lateral:int4|view:int4|minus:int4|cluster:int4|explain:int4|sort:int4|table:int4
1|2|3|4|5|6|7|8|9|10
on:int4|year:int4|limit:int4
1|2|3
ERROR 42601: syntax error at or near "year" [at 10]
ERROR 42601: syntax error at or near "on" [at 10]
ERROR 42601: syntax error at or near "filter" [at 10]
ERROR 42601: syntax error at or near "precision" [at 10]
ERROR 42601: syntax error at or near "with" [at 10]

# LIMIT behind a locking clause.
select id from g order by id for update limit 1;
select id from g order by id for update skip locked limit 1 offset 1;
select id from g order by id for share of g nowait offset 2;
select id from g order by id for no key update offset 1 fetch first 1 row only;
select id from g order by id for update of g for key share of g nowait limit all;
update g set a = 0 where id = (select id from g order by id desc for update skip locked limit 1) returning *;
with x as (select id from g order by id limit 1 for update), y as (select id from g order by id for update offset 1)
select * from x union all select * from y;
insert into g select id + 10 from g where id = 1 for update limit 1 on conflict do nothing returning id;
insert into g select id + 20 from g where id = 1 for update fetch first 1 rows only returning id;
select id from g limit 1 for update limit 1;
select (select id from g i order by id for update limit 1) from g order by id for share limit (select 1 from g for update limit 1);
----
id:int4
1
id:int4
2
id:int4
3
4
id:int4
2
id:int4
1
2
3
4
id:int4|a:int4
4|0
UPDATE 1
id:int4
1
2
3
4
id:int4
11
INSERT 0 1
id:int4
21
INSERT 0 1
ERROR 42601: syntax error at or near "limit" [at 37]
id:int4
1

# ANY, ALL and SOME behind LIKE and behind other operators.
select 'abc' like any(array['a%']), 'abc' like all(array['a%', 'b%']), 'abc' like some ('{x,a%}'), 'abc' not like any(array['a%', 'b%']);
select 'abc' ilike any(array['A%']), 'abc' not ilike all (array['A%']), 'a' like any(null), 'a' || 'bc' like any(array['ab%']) and true;
select 'abc' like any(select 'a%' union select 'b'), 'abc' like all(values ('a%'), ('b')), 'abc' like any((select 'a%'));
select '{"a": 1}'::jsonb @> any(array['{"b": 1}', '{"a": 1}']::jsonb[]), '{"a": 1}'::jsonb ? any(array['a']), 'abc' ^@ some(array['ab']);
select array[1, 2] @> all(select array[1] union select array[2]);
select 1 operator(pg_catalog.=) any(array[1, 2]), 'a' operator("pg_catalog".~) all(array['a', 'b']), 3 operator(>) all(select 1);
select relname from pg_class where relname operator(pg_catalog.~) '^(g)$' collate pg_catalog.default and relkind operator(pg_catalog.=) any(array['r', 'v']);
select 'ab' operator("pg_catalog".~) 'b', operator(pg_catalog.-) 5, operator(~) 1, operator("pg_catalog".@) (-2), 2 - operator(pg_catalog.-) 3;
create view gv as select id from g where a::text like any(array['0', '7']);
select * from gv order by id;
drop view gv;
create table gl (s text check (s like any(array['a%', 'b%'])));
insert into gl values ('bc');
insert into gl values ('c');
drop table gl;
select 1 @> any(array[1]);
select 1 not like any(array[1]);
select 1 like all(select 1);
select '{}'::jsonb -> any(array['a']);
select '{}'::jsonb -> any(select 'a');
select 1 @> any(1);
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|f|t|t
?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|f|NULL|t
?column?:bool|?column?:bool|?column?:bool
t|f|t
?column?:bool|?column?:bool|?column?:bool
t|t|t
?column?:bool
t
?column?:bool|?column?:bool|?column?:bool
t|f|t
relname:name
g
?column?:bool|?column?:int4|?column?:int4|?column?:int4|?column?:int4
t|-5|-2|2|5
CREATE VIEW
id:int4
1
4
DROP VIEW
CREATE TABLE
INSERT 0 1
ERROR 23514: new row for relation "gl" violates check constraint "gl_s_check"
DETAIL: Failing row contains (c).
DROP TABLE
ERROR 42883: operator does not exist: integer @> integer [at 10]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
ERROR 42883: operator does not exist: integer !~~ integer [at 10]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
ERROR 42883: operator does not exist: integer ~~ integer [at 10]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
ERROR 42809: op ANY/ALL (array) requires operator to yield boolean [at 20]
ERROR 42804: row comparison operator must yield type boolean, not type jsonb [at 20]
ERROR 42809: op ANY/ALL (array) requires array on right side [at 10]

# Names behind a period that are keywords.
create table k ("user" int, "current_date" int, "current_time" int, "current_timestamp" int, "current_user" int, "current_catalog" int, "session_user" int, "localtime" int, "localtimestamp" int, "true" bool, "false" bool, "null" int, "asymmetric" int, "symmetric" int, "variadic" int, "interval" int);
insert into k values (1, 2, 3, 4, 5, 6, 7, 8, 9, false, true, 10, 11, 12, 13, 14);
select k.user, k.current_date, k.current_time, k . current_timestamp, k.current_user, k.current_catalog, k.session_user from k;
select k.localtime, k.localtimestamp, k.true, k.false, k.null, k.asymmetric, k.symmetric, k.variadic, k.interval from k where k.false and not k.true;
create view kv as select * from k;
select * from kv;
select (kv).user + 1 from kv;
drop view kv;
alter table k rename "user" to x;
alter table k add check (x > 0);
alter table k rename x to "user";
select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'k'::regclass;
insert into k ("user") values (0);
select user = current_user, true from k limit 1;
drop table k;
----
CREATE TABLE
INSERT 0 1
user:int4|current_date:int4|current_time:int4|current_timestamp:int4|current_user:int4|current_catalog:int4|session_user:int4
1|2|3|4|5|6|7
localtime:int4|localtimestamp:int4|true:bool|false:bool|null:int4|asymmetric:int4|symmetric:int4|variadic:int4|interval:int4
8|9|f|t|10|11|12|13|14
CREATE VIEW
user:int4|current_date:int4|current_time:int4|current_timestamp:int4|current_user:int4|current_catalog:int4|session_user:int4|localtime:int4|localtimestamp:int4|true:bool|false:bool|null:int4|asymmetric:int4|symmetric:int4|variadic:int4|interval:int4
1|2|3|4|5|6|7|8|9|f|t|10|11|12|13|14
?column?:int4
2
DROP VIEW
ALTER TABLE
ALTER TABLE
ALTER TABLE
pg_get_constraintdef:text
CHECK (("user" > 0))
ERROR 23514: new row for relation "k" violates check constraint "k_x_check"
DETAIL: Failing row contains (0, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null).
?column?:bool|?column?:bool
t|t
DROP TABLE

# ROWS is a name except in FROM.
select count(*) as rows from (select 1) x;
select 1 rows from (select 2) x;
select t.rows from (values (1)) t(rows);
select rows from (values (1)) v(rows);
select 1, rows from (select 3 as rows) v;
select substring('abc' from 2), rows from (select 3 as rows) v;
select * from rows from (generate_series(1, 2), generate_series(5, 5)) as r(a, b);
select r.a, x from (values (1)) v(x), rows from (generate_series(1, 2)) r(a) order by 1;
select * from (select 1) x join rows from (generate_series(1, 1)) r on true;
select * from (select 3) x(n), lateral rows from (generate_series(1, n)) r;
select * from (rows from (generate_series(1, 1)) r cross join (select 2) x);
----
rows:int8
1
rows:int4
1
rows:int4
1
rows:int4
1
?column?:int4|rows:int4
1|3
substring:text|rows:int4
bc|3
a:int4|b:int4
1|5
2|NULL
a:int4|x:int4
1|1
2|1
?column?:int4|r:int4
1|1
n:int4|r:int4
3|1
3|2
3|3
r:int4|?column?:int4
1|2

# TABLE is a query.
create table ta as table g;
create table tb (id, b) as table g;
create view tv as table g;
create view tw as select count(*) from (table g) x;
select count(*) from tv, tw;
select pg_get_viewdef('tv'::regclass) ~ 'table';
with x as (select 5 as n) table x;
with x as (table g), y as (select 1) table y;
insert into ta table g;
insert into tb (id, b) table ta;
with x as (select 1, 2) insert into ta table x;
explain (costs off) table g;
explain table g;
explain (costs off) with x as materialized (select 5 as n) table x;
(table tw) union all table tw;
select (values (1)) + 1, 1 in (values (1), (2));
select 1 as table, count(*) table from tb;
drop view tv, tw;
drop table ta, tb;
----
CREATE VIEW
CREATE VIEW
count:int8
6
?column?:bool
f
n:int4
5
?column?:int4
1
INSERT 0 6
INSERT 0 12
INSERT 0 1
Full Scan on g
Full Scan on g
CTE Scan on x
  CTE x
    ->  Result
count:int8
6
6
?column?:int4|?column?:bool
2|t
table:int4|table:int8
1|18
DROP VIEW
DROP TABLE

# Sources of INSERT in parentheses.
create table p (a int, b int);
insert into p (with q as (select 90) select *, 1 from q);
insert into p ((select 1, 1));
insert into p(values(1, 1));
insert into p as x (values (2, 2), ((3), 3)) returning x.a;
insert into p (select 4, 4) union all (select 5, 5);
insert into p (((values (6, 6)) union (select 7, 7)) order by 1) returning a;
insert into p (b) (with q as (select 8) table q);
insert into public.p (values (9, 9));
insert into p values ((10), 10);
insert into p values ((values (10)), 10);
insert into p (table p) on conflict do nothing;
select a, b, count(*) from p group by 1, 2 order by 1, 2;
insert into p (values);
drop table p;
----
CREATE TABLE
INSERT 0 1
INSERT 0 1
INSERT 0 1
a:int4
2
3
INSERT 0 2
INSERT 0 2
a:int4
6
7
INSERT 0 2
INSERT 0 1
INSERT 0 1
INSERT 0 1
INSERT 0 1
INSERT 0 13
a:int4|b:int4|count:int8
1|1|4
2|2|2
3|3|2
4|4|2
5|5|2
6|6|2
7|7|2
9|9|2
10|10|4
90|1|2
NULL|8|2
ERROR 42601: syntax error at or near ";" [at 23]
DROP TABLE

# INTERVAL with a precision, and as the name of a column.
select interval(3) '1.23456 s', interval(1) '1.25', interval (0) '1.5' + interval '1 s', interval '1.25' second(1);
create table i (interval int, b int);
insert into i (interval, b) values (1, 2), (6, 7);
update i set interval = interval + 1 where interval = 1;
select interval, interval + 1 as n, -interval m, i.interval from i where interval in (6, 2) order by interval;
select case when interval = 6 then 'six' end, sum(interval) over (order by interval) from i group by interval order by 1;
select interval $1;
drop table i;
----
interval:interval|interval:interval|?column?:interval|interval:interval
00:00:01.235|00:00:01.3|00:00:03|00:00:01.3
CREATE TABLE
INSERT 0 2
UPDATE 1
interval:int4|n:int4|m:int4|interval:int4
2|3|-2|2
6|7|-6|6
case:text|sum:int8
six|8
NULL|2
ERROR 42601: syntax error at or near "$1" [at 17]
DROP TABLE

# TRIM without characters in definitions, and without a side.
create table y as select trim(both from ' b ') as a, trim(from ' c ') as c;
select * from y;
alter table y add check (trim(leading from a) <> '');
alter table y add d text default trim(leading from ' x');
create table z (a text default trim(from ' y '), check (trim(both from a) <> 'no'));
create index on z (trim(both from a));
insert into z values (default), ('ok');
insert into z values (' no ');
create view yv as select trim(trailing from ' e ') from y;
select length(rtrim) from yv;
select trim(both from a) from z order by 1;
insert into y (a) values (' ');
drop view yv;
drop table y, z;
----
a:text|c:text
b|c
ALTER TABLE
ALTER TABLE
CREATE TABLE
CREATE INDEX
INSERT 0 2
ERROR 23514: new row for relation "z" violates check constraint "z_a_check"
DETAIL: Failing row contains ( no ).
CREATE VIEW
length:int4
2
btrim:text
ok
y
ERROR 23514: new row for relation "y" violates check constraint "y_a_check"
DETAIL: Failing row contains ( , null, x).
DROP VIEW
DROP TABLE

# The parameters of a column's key, WITH DATA, `:=`.
create table kc (a int primary key with (fillfactor = 70), b int unique with (fillfactor = 70), c int unique nulls not distinct with (fillfactor = 70) not null);
select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'kc'::regclass order by 1;
create table kd (a int unique with (nope = 1));
create table kd (a int unique with fillfactor);
create table kd as select 1 as a with data;
select * from kd;
create table ke as table kd with data;
create table ke (a int) with data;
select make_interval(days := 5, hours := 1);
select make_interval(5, days => 1);
drop table kc, kd, ke;
----
CREATE TABLE
pg_get_constraintdef:text
PRIMARY KEY (a)
UNIQUE (b)
UNIQUE NULLS NOT DISTINCT (c)
ERROR 22023: unrecognized parameter "nope"
ERROR 42601: syntax error at or near "fillfactor" [at 36]
a:int4
1
ERROR 42601: syntax error at or near "data" [at 30]
make_interval:interval
5 days 01:00:00
make_interval:interval
5 years 1 day
DROP TABLE

# OWNER TO has no effect.
create table o (id serial primary key);
create sequence os;
create view ov as select 1;
create type ot as enum ('a');
create domain od as int;
alter table o owner to postgres;
alter table only public.o owner to current_user;
alter table o add b int, owner to postgres;
alter view ov owner to postgres;
alter table ov owner to postgres;
alter sequence os owner to postgres;
alter sequence o_id_seq owner to postgres;
alter type ot owner to postgres;
alter domain od owner to postgres;
alter type od owner to postgres;
alter index o_pkey owner to postgres;
alter table nope owner to postgres;
alter table if exists nope owner to postgres;
alter sequence if exists nope owner to postgres;
alter view nope owner to postgres;
alter view o owner to postgres;
alter sequence o owner to postgres;
alter index o owner to postgres;
alter type nope owner to postgres;
alter type o owner to postgres;
alter table s.nope owner to postgres;
alter table pg_class owner to postgres;
alter table o owner;
alter table o owner to;
drop view ov;
drop table o;
drop sequence os;
drop type ot, od;
----
CREATE TABLE
CREATE SEQUENCE
CREATE VIEW
CREATE TYPE
CREATE DOMAIN
ALTER TABLE
ALTER TABLE
ALTER TABLE
ALTER VIEW
ALTER TABLE
ALTER SEQUENCE
ALTER SEQUENCE
ALTER TYPE
ALTER DOMAIN
ALTER TYPE
ALTER INDEX
ERROR 42P01: relation "nope" does not exist
NOTICE 00000: relation "nope" does not exist, skipping
ALTER TABLE
NOTICE 00000: relation "nope" does not exist, skipping
ALTER SEQUENCE
ERROR 42P01: relation "nope" does not exist
ERROR 42809: "o" is not a view
ERROR 42809: "o" is not a sequence
ERROR 42809: "o" is not an index
ERROR 42704: type "nope" does not exist
ERROR 42809: o is a table's row type
HINT: Use ALTER TABLE instead.
ERROR 3F000: schema "s" does not exist
ERROR 42501: permission denied: "pg_class" is a system catalog
ERROR 42601: syntax error at or near ";" [at 20]
ERROR 42601: syntax error at or near ";" [at 23]
DROP VIEW
DROP TABLE
DROP SEQUENCE
DROP TYPE

# Escapes of Unicode.
select E'\uD83D\uDE00', 'x', length(E'\uD83D\uDE00 \U0001F600'), U&'\d83d\de00\+00d83d\de00';
select E'\u00';
select 'x', E'ab\u00zz';
select E'\U0011';
select E'\uD83D';
select E'\uD83Dab';
select E'\uDE00';
select E'\u0000';
select U&'\zz';
select U&'\d83d';
select U&'ab\d83dx';
select U&'\de00';
select U&'\+11';
select E'\uD83D\uDE00', nope;
----
?column?:text|?column?:text|length:int4|?column?:text
😀|x|3|😀😀
ERROR 22025: invalid Unicode escape [at 10]
HINT: Unicode escapes must be \uXXXX or \UXXXXXXXX.
ERROR 22025: invalid Unicode escape [at 17]
HINT: Unicode escapes must be \uXXXX or \UXXXXXXXX.
ERROR 22025: invalid Unicode escape [at 10]
HINT: Unicode escapes must be \uXXXX or \UXXXXXXXX.
ERROR 42601: invalid Unicode surrogate pair at or near "'" [at 16]
ERROR 42601: invalid Unicode surrogate pair at or near "a" [at 16]
ERROR 42601: invalid Unicode surrogate pair at or near "\uDE00" [at 10]
ERROR 42601: invalid Unicode escape value at or near "\u0000" [at 10]
ERROR 42601: invalid Unicode escape [at 11]
HINT: Unicode escapes must be \XXXX or \+XXXXXX.
ERROR 42601: invalid Unicode surrogate pair [at 16]
ERROR 42601: invalid Unicode surrogate pair [at 18]
ERROR 42601: invalid Unicode surrogate pair [at 11]
ERROR 42601: invalid Unicode escape [at 11]
HINT: Unicode escapes must be \XXXX or \+XXXXXX.
ERROR 42703: column "nope" does not exist [at 25]

# What follows a number or a parameter at once, and names of no length.
select 1from g;
select 1 as "";
select "" from g;
select 1 as a, U&"" from g;
select $1abc;
select $abc;
select a from g order by a using +;
select a from g order by a using =;
select a::text s from g order by s using ~>=~;
select a::text s from g order by s using ~<~;
select a::text s from g order by s using operator(pg_catalog.~>~);
drop table g;
----
ERROR 42601: trailing junk after numeric literal at or near "1from" [at 8]
ERROR 42601: zero-length delimited identifier at or near """" [at 13]
ERROR 42601: zero-length delimited identifier at or near """" [at 8]
ERROR 42601: zero-length delimited identifier at or near "U&""" [at 16]
ERROR 42601: trailing junk after parameter at or near "$1abc" [at 8]
ERROR 42601: syntax error at or near "$" [at 8]
ERROR 42809: operator + is not a valid ordering operator [at 34]
HINT: Ordering operators must be "<" or ">" members of btree operator families.
ERROR 42809: operator = is not a valid ordering operator [at 34]
HINT: Ordering operators must be "<" or ">" members of btree operator families.
ERROR 42809: operator ~>=~ is not a valid ordering operator [at 42]
HINT: Ordering operators must be "<" or ">" members of btree operator families.
ERROR 0A000: ORDER BY USING ~<~ is not supported yet [at 42]
ERROR 0A000: ORDER BY USING ~>~ is not supported yet [at 42]
DROP TABLE

# Joins inside joins, without parentheses.
create table a (id int, x int);
create table b (id int, y int);
create table c (id int, z int);
insert into a values (1, 10), (2, 20), (3, 30);
insert into b values (1, 11), (2, 21);
insert into c values (1, 12), (3, 32);
select a.id, b.id, c.id from a left join b join c on b.id = c.id on a.id = b.id order by 1;
select a.id, b.id, c.id from a left outer join b left join c on b.id = c.id on a.id = b.id order by 1;
select * from a join b natural join c using (id);
select a.id, b.id, c.id from a join b cross join c on a.id = b.id and c.id = a.id;
select a.id, b.id, c.id, d.id from a left join b full join c on b.id = c.id left join a d on d.id = c.id on a.id = b.id order by 1;
select a.id, b.id, c.id, d.id from a left join b inner join c inner join a d on d.id = c.id on b.id = c.id on a.id = b.id order by 1;
select a.id, f, c.id from a join lateral generate_series(1, a.id) f join c on f = c.id on true order by 1, 2;
select a.id from a cross join b join c on b.id = c.id on a.id = b.id;
select a.id from a join b join c on b.id = c.id on a.id = b.id and c.q = 1;
create view nested as select a.id, c.z from a left join b join c on b.id = c.id on a.id = b.id;
select * from nested order by id;
drop view nested;
drop table a, b, c;
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
INSERT 0 3
INSERT 0 2
INSERT 0 2
id:int4|id:int4|id:int4
1|1|1
2|NULL|NULL
3|NULL|NULL
id:int4|id:int4|id:int4
1|1|1
2|2|NULL
3|NULL|NULL
id:int4|x:int4|y:int4|z:int4
1|10|11|12
id:int4|id:int4|id:int4
1|1|1
id:int4|id:int4|id:int4|id:int4
1|1|1|1
2|2|NULL|NULL
3|NULL|NULL|NULL
id:int4|id:int4|id:int4|id:int4
1|1|1|1
2|NULL|NULL|NULL
3|NULL|NULL|NULL
id:int4|f:int4|id:int4
1|1|1
2|1|1
3|1|1
3|3|3
ERROR 42601: syntax error at or near "on" [at 55]
ERROR 42703: column c.q does not exist [at 68]
CREATE VIEW
id:int4|z:int4
1|12
2|NULL
3|NULL
DROP VIEW
DROP TABLE

# Behind a dot any word is the name of a column, also in joins that nest.
create table dotted (x int, "from" int, "on" int, "set" int);
insert into dotted values (1, 1, 1, 1);
select count(*) from dotted a left join dotted b join dotted c on b.on = c.set and c.from = 1 on a.x = b.x;
drop table dotted;
----
CREATE TABLE
INSERT 0 1
count:int8
1
DROP TABLE
