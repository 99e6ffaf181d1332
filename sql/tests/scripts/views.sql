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

# Changes through views, and statements that are not for views.

insert into v values (9, 'nine', 90);
update v set b = 'x' where a = 1;
delete from v where a = 1;
select * from v for update;
truncate v;
alter table v add column z int;
create index on v (a);
select * from t where a = 1;
----

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
----

# Bounds.

create view e0 as select 1 as a;
create view e1 as select x.a from e0 x, e0 y, e0 z, e0 w;
create view e2 as select x.a from e1 x, e1 y, e1 z, e1 w;
create view e3 as select x.a from e2 x, e2 y, e2 z, e2 w;
select * from e3;
create view e4 as select x.a from e3 x, e3 y, e3 z, e3 w;
create view e5 as select x.a from e4 x, e4 y, e4 z, e4 w;
----

# The system catalog.

create view cat as select a, b as "B", c::numeric(6, 2) as n from t;
select relname, relkind, relnatts, relam from pg_class where relname = 'cat';
select attname, format_type(atttypid, atttypmod), attnum from pg_attribute where attrelid = 'cat'::regclass order by 3;
select pg_get_viewdef('cat'::regclass), pg_get_viewdef('cat'), pg_get_viewdef('t'::regclass);
select schemaname, viewname, definition from pg_views where viewname = 'cat';
select table_schema, table_name, view_definition, is_updatable from information_schema.views where table_name = 'cat';
select table_type, is_insertable_into from information_schema.tables where table_name = 'cat';
select column_name, data_type, is_nullable from information_schema.columns where table_name = 'cat' order by ordinal_position;
select pg_table_is_visible('cat'::regclass), 'public.cat'::regclass;
----
