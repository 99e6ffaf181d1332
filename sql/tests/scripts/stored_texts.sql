# Texts that the catalog keeps: operators with ANY and ALL in conditions, names of sequences in defaults.

create table cm (s text check (s like any (array['a%'])), x int, check (x = any (array[1, 2]) or s ilike all (array['A%'])));
create index cmi on cm (x) where s ilike any (array['A%']);
create index cme on cm ((s like any (array['b%'])));
create table gm (s text, g boolean generated always as (case when s like any (array['a%']) then true else false end) stored);
select pg_get_constraintdef(oid) like '%~~ ANY%' a, pg_get_constraintdef(oid) like '%~~* ALL%' b from pg_constraint where conrelid = 'cm'::regclass order by conname;
select indexdef from pg_indexes where tablename = 'cm' order by 1;
insert into cm values ('b', 1);
insert into cm values ('abc', 1);
alter table cm rename column s to t;
insert into cm values ('b', 1);
insert into gm values ('abc'), ('b') returning *;
create sequence inv;
create table iv (id int primary key, no text default 'INV-' || lpad(nextval('inv')::text, 5, '0'));
alter sequence inv rename to inv_seq;
insert into iv values (1) returning *;
create schema p1;
create schema p2;
set search_path = p1;
create sequence s1;
create table st (id serial, b text default 'x' || nextval('s1'), c int default nextval('s1') + 0, d int default nextval('s1'), e oid default 's1'::regclass::oid);
set search_path = p2;
create sequence s1 start 500;
insert into p1.st default values returning id, b, c, d, e = 'p1.s1'::regclass;
alter sequence s1 rename to s1z;
set search_path = public;
insert into p1.st default values returning id, b, c, d;
alter sequence p1.s1 rename to s1q;
create table nos (a int, c int default nextval('nosuch') + 1);
create table nos (a int, c text default 's1' || nextval('p1.s1q'), d text default 'it''s ' || nextval('inv_seq'));
insert into nos default values returning *;
begin;
set constraints st_id_key deferred;
rollback;
----
CREATE TABLE
CREATE INDEX
CREATE INDEX
CREATE TABLE
a:bool|b:bool
f|t
t|f
indexdef:text
CREATE INDEX cme ON public.cm USING btree ((s ~~ ANY(ARRAY['b%'])))
CREATE INDEX cmi ON public.cm USING btree (x) WHERE (s ~~* ANY(ARRAY['A%']))
ERROR 23514: new row for relation "cm" violates check constraint "cm_s_check"
DETAIL: Failing row contains (b, 1).
INSERT 0 1
ALTER TABLE
ERROR 23514: new row for relation "cm" violates check constraint "cm_s_check"
DETAIL: Failing row contains (b, 1).
s:text|g:bool
abc|t
b|f
INSERT 0 2
CREATE SEQUENCE
CREATE TABLE
ALTER SEQUENCE
id:int4|no:text
1|INV-00001
INSERT 0 1
CREATE SCHEMA
CREATE SCHEMA
SET
CREATE SEQUENCE
CREATE TABLE
SET
CREATE SEQUENCE
id:int4|b:text|c:int4|d:int4|?column?:bool
1|x1|2|3|t
INSERT 0 1
ALTER SEQUENCE
SET
id:int4|b:text|c:int4|d:int4
2|x4|5|6
INSERT 0 1
ALTER SEQUENCE
ERROR 42P01: relation "nosuch" does not exist
CREATE TABLE
a:int4|c:text|d:text
NULL|s17|it's 2
INSERT 0 1
BEGIN
ERROR 42704: constraint "st_id_key" does not exist
ROLLBACK

# Types are those that a text named when it was written, whatever the search path finds.
create schema p; create schema q; create schema r;
set search_path = p, q;
create domain q.short as varchar(1);
create domain r.short as varchar(3);
create type q.mood as enum ('sad', 'ok');
create table px (id int primary key, x text, y text generated always as (x::short) stored, check (x::short <> 'z'));
create index px_x on px ((x::short));
create table pu (id int primary key, x text);
create unique index pu_x on pu ((x::short)) where 'ok'::mood is not null;
create table pm (id int primary key, m mood default 'sad'::mood check (m in ('sad'::mood, 'ok'::mood)), ms mood[] default array['ok']::mood[]);
insert into px values (1, 'abc'), (2, 'bcd');
insert into pu values (1, 'abc');
insert into pm values (1);
create type r.mood as enum ('a', 'b');
set search_path = r, p;
delete from px where id = 1;
insert into px values (3, 'abc') returning y;
insert into px values (4, 'zzz');
insert into pu values (2, 'abcd');
insert into pm values (2, default, default), (3, 'ok', '{sad}') returning m, ms;
select count(*) from pm where m = 'ok'::q.mood;
select pg_get_expr(adbin, adrelid) from pg_attrdef d join pg_class c on c.oid = adrelid where relname in ('px', 'pm') order by relname, adnum;
select pg_get_constraintdef(oid) from pg_constraint where contype = 'c' and conrelid in ('px'::regclass, 'pm'::regclass) order by conname;
select indexdef from pg_indexes where indexname in ('px_x', 'pu_x') order by indexname desc;
set search_path = p, q;
select id from px where x::short = 'a';
select pg_get_expr(adbin, adrelid) from pg_attrdef d join pg_class c on c.oid = adrelid where relname in ('px', 'pm') order by relname, adnum;
alter type mood rename to feeling;
alter schema q rename to q2;
create schema q;
create type q.mood as enum ('x');
insert into p.pm values (4) returning m, ms;
select pg_get_expr(adbin, adrelid) from pg_attrdef d join pg_class c on c.oid = adrelid where relname = 'pm' order by relname, adnum;
select column_default from information_schema.columns where table_name = 'pm' order by ordinal_position;
drop type q2.feeling;
set search_path = public;
drop schema p, q, q2, r cascade;
----
CREATE SCHEMA
CREATE SCHEMA
CREATE SCHEMA
SET
CREATE DOMAIN
CREATE DOMAIN
CREATE TYPE
CREATE TABLE
CREATE INDEX
CREATE TABLE
CREATE INDEX
CREATE TABLE
INSERT 0 2
INSERT 0 1
INSERT 0 1
CREATE TYPE
SET
DELETE 1
y:text
a
INSERT 0 1
ERROR 23514: new row for relation "px" violates check constraint "px_x_check"
DETAIL: Failing row contains (4, zzz, z).
ERROR 23505: duplicate key value violates unique constraint "pu_x"
DETAIL: Key ((x::q.short))=(a) already exists.
m:enum|ms:_enum
sad|{ok}
ok|{sad}
INSERT 0 2
count:int8
1
pg_get_expr:text
'sad'::q.mood
array['ok']::q.mood[]
x::q.short
pg_get_constraintdef:text
CHECK ((m IN ('sad'::q.mood, 'ok'::q.mood)))
CHECK ((x::q.short <> 'z'))
indexdef:text
CREATE INDEX px_x ON p.px USING btree ((x::q.short))
CREATE UNIQUE INDEX pu_x ON p.pu USING btree ((x::q.short)) WHERE ('ok'::q.mood IS NOT NULL)
SET
id:int4
3
pg_get_expr:text
'sad'::mood
array['ok']::mood[]
x::short
ALTER TYPE
ALTER SCHEMA
CREATE SCHEMA
CREATE TYPE
m:enum|ms:_enum
sad|{ok}
INSERT 0 1
pg_get_expr:text
'sad'::q2.feeling
array['ok']::q2.feeling[]
column_default:varchar
NULL
'sad'::q2.feeling
array['ok']::q2.feeling[]
ERROR 2BP01: cannot drop type q2.feeling because other objects depend on it
DETAIL: column ms of table pm depends on type q2.feeling[]
column m of table pm depends on type q2.feeling
HINT: Use DROP ... CASCADE to drop the dependent objects too.
SET
NOTICE 00000: drop cascades to 8 other objects
DROP SCHEMA

# The table's own sequences and the table itself have no id yet.
create table own (id serial primary key, code text default 'O-' || currval('own_id_seq'), r regclass default 'own'::regclass);
insert into own default values returning code, r;
create schema elsewhere;
set search_path = elsewhere;
insert into public.own default values returning code, r;
set search_path = public;
----
CREATE TABLE
code:text|r:regclass
O-1|own
INSERT 0 1
CREATE SCHEMA
SET
code:text|r:regclass
O-2|public.own
INSERT 0 1
SET

# What a stored text names by its id is not dropped.
create table named (a int);
create table naming (a int, b text default 'named'::regclass::text, f regclass check (f <> 'named'::regclass));
create sequence below;
create table bounded (a int check (a < nextval('below')));
drop table named;
drop table named cascade;
drop table naming;
drop table named;
drop sequence below;
create table p9 (id serial, x text default 'n' || currval('public.p9_id_seq'), y text default 'n' || currval('P9_id_seq'));
insert into p9 default values returning x, y;
drop table p9, own;
----
CREATE TABLE
CREATE TABLE
CREATE SEQUENCE
ERROR 0A000: a function of sequences or of locks in a CHECK is not supported yet [at 36]
ERROR 2BP01: cannot drop table named because other objects depend on it
DETAIL: an expression of table naming depends on table named
HINT: Use DROP ... CASCADE to drop the dependent objects too.
ERROR 0A000: an expression of table naming names what is dropped: drop it first
DROP TABLE
DROP TABLE
DROP SEQUENCE
CREATE TABLE
x:text|y:text
n1|n1
INSERT 0 1
DROP TABLE

# Literals that have no type where any type is wanted.
create table lj (j jsonb default jsonb_build_object('k', 'it''s', 'n', null), t text default concat('a', 1, null));
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'lj'::regclass order by adnum;
insert into lj default values returning *;
----
CREATE TABLE
pg_get_expr:text
jsonb_build_object('k', 'it''s', 'n', NULL::unknown)
concat('a', 1, NULL::unknown)
j:jsonb|t:text
{"k": "it's", "n": null}|a1
INSERT 0 1
