# Views: CREATE, reading, what depends on them.

create table t (a int primary key, b text, c int);
insert into t values (1, 'one', 10), (2, 'two', 20), (3, 'three', 30);
create view v as select * from t;
create view v as select 1 a;
create or replace view t as select 1 a;
create or replace view v as select a, b from t;
create or replace view v as select a as z, b, c from t;
create or replace view v as select a::bigint as a, b, c from t;
create view d as select a, a from t;
create view w (x, y, z, q) as select * from t;
create view w (x, x) as select * from t;
create view w as select $1;
create view w as select nope from t;
create view w as select * from nope;
create temp view w as select 1;
create materialized view w as select 1;
create view w as select * from t for update;
create view w as select a from t with check option;
select * from w;
----
CREATE TABLE
INSERT 0 3
CREATE VIEW
ERROR 42P07: relation "v" already exists
ERROR 42809: "t" is not a view
ERROR 42P16: cannot drop columns from view
ERROR 42P16: cannot change name of view column "a" to "z"
HINT: Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.
ERROR 42P16: cannot change data type of view column "a" from integer to bigint
ERROR 42701: column "a" specified more than once
ERROR 42601: CREATE VIEW specifies more column names than columns
ERROR 42701: column "x" specified more than once
ERROR 42P02: there is no parameter $1 [at 25]
ERROR 42703: column "nope" does not exist [at 25]
ERROR 42P01: relation "nope" does not exist [at 32]
CREATE VIEW
ERROR 0A000: CREATE MATERIALIZED VIEW is not supported yet [at 26]
ERROR 0A000: a row lock in a view is not supported yet [at 18]
ERROR 0A000: CREATE VIEW is not supported yet
?column?:int4
1

select * from v order by a;
select * from v where a = 2;
select v.b, x.c from v join v x using (a) where a = 3;
select * from v as s (p, q) where p = 1;
select (select b from v where a = t.a) from t order by a;
with q as (select * from v) select count(*) from q;
select a from v union all select c from v order by 1;
select t.a, l.b from t, lateral (select b from v where v.a = t.a) l order by 1;
select a from t where exists (select from v where v.a = t.a and v.c > 10) order by 1;
select v.nope from v;
explain select b from v where a = 2;
explain select v.b from t join v on v.a = t.a where t.a = 1;
----
a:int4|b:text|c:int4
1|one|10
2|two|20
3|three|30
a:int4|b:text|c:int4
2|two|20
b:text|c:int4
three|30
p:int4|q:text|c:int4
1|one|10
b:text
one
two
three
count:int8
3
a:int4
1
2
3
10
20
30
a:int4|b:text
1|one
2|two
3|three
a:int4
2
3
ERROR 42703: column v.nope does not exist [at 8]
Point Get on t
  Key: (a = 2)
Nested Loop
  ->  Point Get on t
        Key: (a = 1)
  ->  Point Get on t
        Key: (a = $0)

# Column names, types, kinds of query.

create view r as select 'x', 1 + 1, now() is null as n, a from t;
create view r (x, y) as select 'x', 1 + 1, a from t;
select * from r order by a;
create view vals as values (1, 'p'), (2, 'q');
select * from vals;
create view un as select a, b from t union select column1, column2 from vals;
select * from un order by 1, 2;
create view cte as with q as (select a, c from t where a > 1) select q.a, q.c * 2 as twice from q;
select * from cte order by a;
create view rec as with recursive n (i) as (values (1) union all select i + 1 from n where i < 4) select i from n;
select sum(i) from rec;
create view joined as select * from t join (select 1 a, 2 k) q using (a);
select * from joined;
create view agg as select count(*), max(c) from t;
select * from agg;
create view stars as select t.*, 5 as five, x.* from t, (select 7 as "Seven ""7""") x;
select * from stars order by a;
create view nested as select a, twice from cte where twice > 40;
select * from nested;
select definition from pg_views where viewname = 'stars';
----
ERROR 42701: column "?column?" specified more than once
CREATE VIEW
x:text|y:int4|a:int4
x|2|1
x|2|2
x|2|3
CREATE VIEW
column1:int4|column2:text
1|p
2|q
CREATE VIEW
a:int4|b:text
1|one
1|p
2|q
2|two
3|three
CREATE VIEW
a:int4|twice:int4
2|40
3|60
CREATE VIEW
sum:int8
10
CREATE VIEW
a:int4|b:text|c:int4|k:int4
1|one|10|2
CREATE VIEW
count:int8|max:int4
3|30
CREATE VIEW
a:int4|b:text|c:int4|five:int4|Seven "7":int4
1|one|10|5|7
2|two|20|5|7
3|three|30|5|7
CREATE VIEW
a:int4|twice:int4
3|60
definition:text
 select t.a, t.b, t.c, 5 as five, x."Seven ""7""" from t, (select 7 as "Seven ""7""") x;

# A view keeps what it was, whatever comes later.

create or replace view v as select a, b, c, a * 100 as d from t;
select * from v where a = 1;
create or replace view v as select a, b, c, 1 as d from v;
select * from v;
create or replace view v as select a, b, c, 1 as d from t;
create schema other;
create table other.o (a int);
insert into other.o values (1);
set search_path to public, other;
create view fromother as select a from o;
create table o (a int);
select * from fromother;
set search_path to other;
select * from public.fromother;
select * from fromother;
reset search_path;
select * from fromother;
----
CREATE VIEW
a:int4|b:text|c:int4|d:int4
1|one|10|100
CREATE VIEW
ERROR 42P17: infinite recursion detected in rules for relation "v"
CREATE VIEW
CREATE SCHEMA
CREATE TABLE
INSERT 0 1
SET
CREATE VIEW
CREATE TABLE
a:int4
1
SET
a:int4
1
ERROR 42P01: relation "fromother" does not exist [at 15]
RESET
a:int4
1

# Changes through views, and statements that are not for views.

insert into v values (9, 'nine', 90);
update v set b = 'x' where a = 1;
delete from v where a = 1;
select * from v for update;
truncate v;
alter table v add column z int;
create index on v (a);
analyze v;
vacuum v;
select * from t where a = 1;
----
ERROR 0A000: INSERT into a view is not supported yet [at 13]
ERROR 0A000: UPDATE and DELETE of a view are not supported yet [at 8]
ERROR 0A000: UPDATE and DELETE of a view are not supported yet [at 1]
ERROR 0A000: row locks of a view, a sub-query or a system catalog here are not supported yet [at 1]
ERROR 42809: "v" is not a table
ERROR 42809: ALTER action ADD COLUMN cannot be performed on relation "v"
DETAIL: This operation is not supported for views.
ERROR 42809: cannot create index on relation "v"
DETAIL: This operation is not supported for views.
WARNING 01000: skipping "v" --- cannot analyze non-tables or special system tables
ANALYZE
WARNING 01000: skipping "v" --- cannot vacuum non-tables or special system tables
VACUUM
a:int4|b:text|c:int4
1|one|10

# Names, drops.

alter view vals rename to vals2;
alter view un rename to un2;
alter view t rename to q;
alter view nope rename to q;
alter view if exists nope rename to q;
alter view un2 rename to t;
alter table un2 rename to un3;
select * from un3 where a = 3;
drop table vals;
drop view t;
drop view nope;
drop view if exists nope;
drop view cte;
drop view cte cascade;
select * from nested;
drop table t;
drop view r, un3;
drop table other.o cascade;
select * from fromother;
----
ERROR 0A000: a new name for a view that other views read is not supported yet [at 27]
ALTER VIEW
ERROR 42809: "t" is not a view
ERROR 42P01: relation "nope" does not exist
NOTICE 00000: relation "nope" does not exist, skipping
ALTER VIEW
ERROR 42P07: relation "t" already exists
ALTER TABLE
a:int4|b:text
3|three
ERROR 42809: "vals" is not a table
HINT: Use DROP VIEW to remove a view.
ERROR 42809: "t" is not a view
HINT: Use DROP TABLE to remove a table.
ERROR 42P01: view "nope" does not exist
NOTICE 00000: view "nope" does not exist, skipping
DROP VIEW
ERROR 2BP01: cannot drop view cte because other objects depend on it
DETAIL: view nested depends on view cte
HINT: Use DROP ... CASCADE to drop the dependent objects too.
NOTICE 00000: drop cascades to view nested
DROP VIEW
ERROR 42P01: relation "nested" does not exist [at 15]
ERROR 2BP01: cannot drop table t because other objects depend on it
DETAIL: view v depends on table t
view r depends on table t
view un3 depends on table t
view joined depends on table t
view agg depends on table t
view stars depends on table t
HINT: Use DROP ... CASCADE to drop the dependent objects too.
DROP VIEW
NOTICE 00000: drop cascades to view fromother
DROP TABLE
ERROR 42P01: relation "fromother" does not exist [at 15]

# A transaction's own views; a plan follows the view.

begin;
create view tv as select 1 as one;
select * from tv;
rollback;
select * from tv;
\params 1
select b from v where a = $1;
create or replace view v as select a, 'new ' || b as b, c, 1 as d from t;
\params 1
select b from v where a = $1;
\session other
select b from v where a = 2;
\session main
begin;
declare c cursor for select a, b from v order by a desc;
fetch 2 from c;
commit;
----
BEGIN
CREATE VIEW
one:int4
1
ROLLBACK
ERROR 42P01: relation "tv" does not exist [at 15]
params int4
b:text
one
CREATE VIEW
params int4
b:text
new one
b:text
new two
BEGIN
DECLARE CURSOR
a:int4|b:text
3|new three
2|new two
FETCH 2
COMMIT

# What a new view reads is there when it is committed.

create table gone (a int);
begin;
create view ofgone as select a from gone;
\session other
drop table gone;
\session main
commit;
select * from ofgone;
begin;
create view ofr as select a from joined;
\session other
drop view joined;
\session main
commit;
select * from ofr;
----
CREATE TABLE
BEGIN
CREATE VIEW
DROP TABLE
ERROR 40001: could not serialize access due to concurrent update
DETAIL: write conflict on "mt\x00\x00@\x13": committed at 100000.*, after 100000.*
HINT: The transaction might succeed if retried.
ERROR 42P01: relation "ofgone" does not exist [at 15]
BEGIN
CREATE VIEW
DROP VIEW
ERROR 40001: could not serialize access due to concurrent update
DETAIL: write conflict on "mo\x00\x00@\n": committed at 100000.*, after 100000.*
HINT: The transaction might succeed if retried.
ERROR 42P01: relation "ofr" does not exist [at 15]

# Bounds.

create view e0 as select 1 as a;
create view e1 as select x.a from e0 x, e0 y, e0 z, e0 w;
create view e2 as select x.a from e1 x, e1 y, e1 z, e1 w;
create view e3 as select x.a from e2 x, e2 y, e2 z, e2 w;
select * from e3;
create view e4 as select x.a from e3 x, e3 y, e3 z, e3 w;
create view e5 as select x.a from e4 x, e4 y, e4 z, e4 w;
----
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
a:int4
1
CREATE VIEW
ERROR 54001: views nest too deep
DETAIL: Views read views up to 32 levels deep, and one statement reads up to 1000.

# The system catalog.

create view cat as select a, b as "B", c::numeric(6, 2) as n from t;
select relname, relkind, relnatts, relam from pg_class where relname = 'cat';
select attname, format_type(atttypid, atttypmod), attnum from pg_attribute where attrelid = 'cat'::regclass order by 3;
select pg_get_viewdef('cat'::regclass), pg_get_viewdef('cat'), pg_get_viewdef('t'::regclass);
select pg_get_viewdef('cat'::regclass::oid, true);
select c.relname from pg_class c where c.relkind in ('v', '') and pg_table_is_visible(c.oid) and c.relnamespace = 2200 order by 1;
select schemaname, viewname, definition from pg_views where viewname = 'cat';
select table_schema, table_name, view_definition, is_updatable from information_schema.views where table_name = 'cat';
select table_type, is_insertable_into from information_schema.tables where table_name = 'cat';
select column_name, data_type, is_nullable from information_schema.columns where table_name = 'cat' order by ordinal_position;
select pg_table_is_visible('cat'::regclass), 'public.cat'::regclass;
----
CREATE VIEW
relname:name|relkind:char|relnatts:int2|relam:oid
cat|v|3|0
attname:name|format_type:text|attnum:int2
a|integer|1
B|text|2
n|numeric(6,2)|3
pg_get_viewdef:text|pg_get_viewdef:text|pg_get_viewdef:text
 select a, b as "B", c::numeric(6, 2) as n from t;| select a, b as "B", c::numeric(6, 2) as n from t;|NULL
pg_get_viewdef:text
 select a, b as "B", c::numeric(6, 2) as n from t;
relname:name
agg
cat
e0
e1
e2
e3
e4
rec
stars
v
vals
schemaname:name|viewname:name|definition:text
public|cat| select a, b as "B", c::numeric(6, 2) as n from t;
table_schema:name|table_name:name|view_definition:varchar|is_updatable:varchar
public|cat| select a, b as "B", c::numeric(6, 2) as n from t;|NO
table_type:varchar|is_insertable_into:varchar
VIEW|NO
column_name:name|data_type:varchar|is_nullable:varchar
a|integer|YES
B|text|YES
n|numeric|YES
pg_table_is_visible:bool|regclass:regclass
t|cat
