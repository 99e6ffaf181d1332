# Domains: CREATE DOMAIN, casts, columns, ALTER DOMAIN, DROP DOMAIN.

create domain posint as int check (value > 0);
create domain small as posint not null default 7 constraint below check (value < 100);
create domain code varchar(3) constraint upper check (value = upper(value)) check (value <> 'XXX');
create domain tags text[] default '{}' null;
create domain posint as text;
select 5::posint, 5::small, '7'::posint + 1, 'ABCD'::code, '{a,b}'::tags, null::posint, null::tags;
select (-5)::posint;
select '-5'::posint;
select cast('x' as posint);
select 200::small;
select (-200)::small;
select null::small;
select 'abc'::code;
select 'XXX'::code;
select true::posint;
select case when false then (-1)::posint else 1 end;
select x::posint from (values (1), (2), (-3)) as t (x);
select 5::posint = 5, 5::posint < 6::small, greatest(1::posint, 2), coalesce(null::posint, 3), array[1::posint];
select 5::nope, 5::public.posint;
select 5::posint(3);
----

create domain bad as int check (foo > 1);
create domain bad as int check (t.a > 1);
create domain bad as int check ((select 1) > 1);
create domain bad as int check (value);
create domain bad as int check (sum(value) > 1);
create domain bad as int check (value > $1);
create domain bad as int default 'x';
create domain bad as int default true;
create domain bad as int default value;
create domain bad as int not null null;
create domain bad as int default 1 default 2;
create domain bad as int unique;
create domain bad as int primary key;
create domain bad as int references t;
create domain bad as int constraint a check (value > 1) constraint a check (value > 2);
create domain bad as int collate "C";
create domain bad as text collate "nope";
create domain bad as nope;
create domain bad as serial;
create domain bad as record;
create domain bad as anyelement;
create domain nope.bad as int;
create domain bad int check;
create domain bad int constraint a;
create domain c_text as text collate "C";
----

create table t (id int primary key, a posint, b small, c code default 'ABC', d tags);
insert into t (id, a, b) values (1, 1, 2);
insert into t (id, a) values (2, 3);
insert into t (id) values (3);
insert into t values (4, -1, 2), (5, 1, 1);
insert into t values (4, 1, null);
insert into t values (4, 1, 200);
insert into t values (4, 1, -200);
insert into t values (4, 1, 1, 'abc');
insert into t values (4, 1, 1, 'ABCD');
insert into t values (4, 'x');
insert into t values (4, true);
insert into t values (4, 2.6, default, default, '{x,y}') returning *;
insert into t select 5, -1, 1;
insert into t values (1, 1, 1) on conflict (id) do update set b = -excluded.b;
insert into t values (1, 1, 1) on conflict (id) do update set b = excluded.b + 40 returning *;
update t set a = -a where id = 1;
update t set a = null, b = default where id = 1 returning *;
update t set b = null;
select * from t order by id;
select a + 1, a = b, c || '!', d[1] from t where id = 4;
select id from t where a = 3;
select id from t where a = -3;
----

\params -4
insert into t values (6, $1, 1);
\params 4
insert into t values (6, $1, 1) returning a;
\params 6 6
select id from t where a = $1::posint - 2 and id = $2;
\params -6
select $1::posint;
prepare p (posint, small) as select $1, $2;
execute p (1, 2);
----

alter domain posint add check (value < 4);
alter domain posint add constraint lower check (value < 5);
alter domain posint add constraint lower check (value < 50);
alter domain posint add constraint lower check (value < 60);
insert into t values (7, 55, 1);
insert into t values (7, 1, 55);
alter domain posint rename constraint lower to limited;
alter domain posint rename constraint nope to other;
alter domain posint rename constraint limited to posint_check;
alter domain posint validate constraint limited;
alter domain posint validate constraint nope;
alter domain posint drop constraint nope;
alter domain posint drop constraint if exists nope;
alter domain posint drop constraint limited;
insert into t values (7, 55, 55);
alter domain posint set not null;
alter domain posint set default 9;
insert into t (id) values (8) returning *;
alter domain posint drop default;
insert into t (id) values (9) returning *;
alter domain posint set not null;
delete from t where a is null;
alter domain posint set not null;
insert into t (id) values (9);
alter domain posint drop not null;
insert into t (id) values (9) returning *;
alter domain posint set default 'x';
alter domain posint add check (nope > 1);
alter domain posint add unique (a);
alter domain posint owner to postgres;
alter domain nope set not null;
alter domain t set not null;
alter domain int4 set not null;
alter domain posint rename to small;
alter domain posint rename to positive;
select 1::posint;
select (-1)::positive;
alter type positive rename to posint;
alter type posint add value 'x';
----

# Rows of other tables and of the same transaction are checked too.
create table u (x posint);
begin;
insert into u values (10);
alter domain posint add constraint tiny check (value < 10);
rollback;
begin;
insert into u values (5);
alter domain posint add constraint tiny check (value < 60);
insert into u values (70);
rollback;
insert into u values (70);
select * from u;
drop table u;
----

create table k (p posint primary key, q small unique, check (p > 1), g posint generated always as (p - 5) stored);
insert into k values (6, 1), (7, 2);
insert into k values (5, 3);
insert into k values (0, 3);
create index on k (g);
select * from k where g = 1::posint;
explain (costs off) select * from k where p = 6::posint;
explain (costs off) select * from k where p + 1 = 7::posint;
create table child (p posint references k on delete set null on update cascade, q small references k (q) on delete set default);
insert into child values (6, 1);
delete from k where p = 6;
update child set q = 2, p = 7;
update k set p = 8 where p = 7;
select * from child;
alter domain small drop not null;
alter domain small drop default;
delete from k;
select * from child;
drop table child, k;
alter domain small set default 7;
----

alter table t add column e small;
alter table t add column f small default 200;
alter table t add column f posint default null;
alter table t alter column f type small;
update t set f = 200 where id = 1;
create table made as select id, a, a + 1 as b from t where id < 3;
insert into made values (1, -1, 1);
insert into made values (1, 1, -1) returning *;
alter table t alter column id type posint;
alter table t alter column id type small using id + 100;
alter table t alter column id type code;
alter table t alter column e type int;
alter table t alter column e drop default;
alter table t add column g posint check (g < 5);
insert into t (id, g) values (20, 7);
alter table t drop column g;
create table copied (like t including all);
create table ident (a posint generated always as identity);
create sequence s as posint;
create view v as select a, 5::posint as five, a::small as s from t where a > 0::posint;
select * from v order by a limit 1;
----

copy t (id, a) to stdout;
select domain_name, data_type, udt_name, numeric_precision, character_maximum_length, domain_default from information_schema.domains where domain_schema = 'public' order by 1;
select domain_name, constraint_name from information_schema.domain_constraints where domain_schema = 'public' order by 1, 2;
select constraint_name, check_clause from information_schema.check_constraints where constraint_name in ('below', 'upper', 'code_check');
select domain_name, table_name, column_name from information_schema.column_domain_usage where table_name in ('t', 'made') order by 2, 3;
select udt_name, domain_name from information_schema.domain_udt_usage where domain_schema = 'public' order by 2;
select column_name, data_type, udt_name, domain_schema, domain_name, character_maximum_length, numeric_precision from information_schema.columns where table_name = 't' order by ordinal_position;
select typname, typtype, typcategory, typbasetype::regtype, typtypmod, typnotnull, typdefault, typelem::regtype, typarray::regtype, typinput, typoutput, typreceive, typsend, typcollation from pg_type where typnamespace = 'public'::regnamespace and typtype = 'd' order by 1;
select typname, typtype, typcategory, typelem::regtype, typinput from pg_type where typname in ('_posint', '_code') order by 1;
select conname, contype, contypid::regtype, conrelid, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) from pg_constraint where contypid <> 0 and connamespace = 'public'::regnamespace order by 1;
select attname, atttypid::regtype, format_type(atttypid, atttypmod), atttypmod from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum;
select 'posint'::regtype, 'public.code'::regtype, format_type('posint'::regtype, null), to_regtype('posint') = 'posint'::regtype;
SELECT n.nspname as "Schema", t.typname as "Name", pg_catalog.format_type(t.typbasetype, t.typtypmod) as "Type", (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type bt WHERE c.oid = t.typcollation AND bt.oid = t.typbasetype AND t.typcollation <> bt.typcollation) as "Collation", CASE WHEN t.typnotnull THEN 'not null' END as "Nullable", t.typdefault as "Default", pg_catalog.array_to_string(ARRAY(SELECT pg_catalog.pg_get_constraintdef(r.oid, true) FROM pg_catalog.pg_constraint r WHERE t.oid = r.contypid), ' ') as "Check" FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.typtype = 'd' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_type_is_visible(t.oid) ORDER BY 1, 2;
----

drop domain posint;
drop domain nope;
drop domain if exists nope;
drop domain int4;
drop type tags;
drop view v;
create table named (a int default 5::code::text::posint, b text check (b::code is null));
drop domain code;
drop domain code cascade;
drop domain tags cascade;
drop table named;
drop domain posint, small cascade;
select * from t order by 1 limit 1;
create domain nn as int;
drop type nn;
select 1::nn;
----

# In other schemas, and temporary ones.
create schema other;
create domain other.d as int check (value > 0);
create domain d as other.d check (value < 10);
select 0::d;
select 0::other.d;
create table other.t (a other.d, b d);
insert into other.t values (1, 10);
insert into other.t values (0, 1);
select format_type('other.d'::regtype, null);
set search_path = other;
select 10::d;
select 10::public.d;
insert into t values (1, 20);
reset search_path;
drop schema other;
drop schema other cascade;
select 0::d;
create domain pg_temp.x as int check (value > 0);
select 0::x;
create temp table tt (a x);
----

# A transaction's own domains.
begin;
create domain own as int check (value > 0);
create table owned (a own);
insert into owned values (1);
savepoint p;
insert into owned values (0);
rollback to p;
alter domain own add check (value < 5);
insert into owned values (7);
rollback;
select 1::own;

----

# What PostgreSQL has and Cortado has not.
create domain plain as int;
create domain bad as int check (value::plain > 1);
create domain bad as int check (pg_backend_pid() > value and pg_try_advisory_lock(1));
create sequence numbers;
create domain bad as int default nextval('numbers');
select 1::plain[];
create table bad (a plain[]);
alter domain plain add check (value > 2) not valid;
alter domain plain set schema pg_temp;
create view reads as select 1::plain as a;
alter domain plain rename to other;
alter type plain rename to other;
select a from reads;
----
