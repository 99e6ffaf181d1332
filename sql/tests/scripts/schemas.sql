# Schemas, the search path, databases.

create schema app;
create schema app;
create schema if not exists app;
create schema pg_x;
create schema authorization bob;
create table app.t (id int primary key, v text);
create table t (id int primary key, w text);
insert into app.t values (1, 'app');
insert into t values (1, 'public');
select * from t;
select * from app.t;
select app.t.v from app.t;
select * from nope.t;
create table nope.t (a int);
select current_schema, current_schema();
----
CREATE SCHEMA
ERROR 42P06: schema "app" already exists
NOTICE 42P06: schema "app" already exists, skipping
CREATE SCHEMA
ERROR 42939: unacceptable schema name "pg_x"
DETAIL: The prefix "pg_" is reserved for system schemas.
CREATE SCHEMA
CREATE TABLE
CREATE TABLE
INSERT 0 1
INSERT 0 1
id:int4|w:text
1|public
id:int4|v:text
1|app
v:text
app
ERROR 42P01: relation "nope.t" does not exist [at 15]
ERROR 3F000: schema "nope" does not exist [at 14]
current_schema:name|current_schema:name
public|public

set search_path to app, public;
show search_path;
select * from t;
select current_schema();
create table u (a int primary key);
create index on u (a);
select 'app.u'::regclass, 'u'::regclass, 'public.t'::regclass;
set search_path to public;
select 'app.u'::regclass, 't'::regclass;
select * from u;
drop index app.u_a_idx;
drop index u_a_idx;
set search_path to nope;
select * from t;
create table x (a int);
select current_schema();
set search_path to "$user", public;
select current_schema();
reset search_path;
----
SET
search_path:text
app, public
SHOW
id:int4|v:text
1|app
current_schema:name
app
CREATE TABLE
CREATE INDEX
regclass:regclass|regclass:regclass|regclass:regclass
u|u|public.t
SET
regclass:regclass|regclass:regclass
app.u|t
ERROR 42P01: relation "u" does not exist [at 15]
DROP INDEX
ERROR 42704: index "u_a_idx" does not exist
SET
ERROR 42P01: relation "t" does not exist [at 15]
ERROR 3F000: no schema has been selected to create in [at 14]
current_schema:name
NULL
SET
current_schema:name
public
RESET

# A plan follows the search path.
drop schema bob;
select * from t;
set search_path to app;
select * from t;
set search_path to public;
select * from t;
----
DROP SCHEMA
id:int4|w:text
1|public
SET
id:int4|v:text
1|app
SET
id:int4|w:text
1|public

drop schema app;
drop schema nope;
drop schema if exists nope;
drop schema app cascade;
select * from app.t;
select * from t;
insert into t values (1, 'x');
create schema app;
create table app.t (id int primary key);
insert into app.t values (1), (1);
drop table app.t, t;
drop schema app;
drop table nope.t;
drop table if exists nope.t;
----
ERROR 2BP01: cannot drop schema app because other objects depend on it
DETAIL: table app.t depends on schema app
table app.u depends on schema app
HINT: Use DROP ... CASCADE to drop the dependent objects too.
ERROR 3F000: schema "nope" does not exist
NOTICE 00000: schema "nope" does not exist, skipping
DROP SCHEMA
NOTICE 00000: drop cascades to 2 other objects
DROP SCHEMA
ERROR 42P01: relation "app.t" does not exist [at 15]
id:int4|w:text
1|public
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(1) already exists.
CREATE SCHEMA
CREATE TABLE
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(1) already exists.
DROP TABLE
DROP SCHEMA
ERROR 3F000: schema "nope" does not exist
NOTICE 00000: schema "nope" does not exist, skipping
DROP TABLE

# The schema of a transaction that is rolled back.
begin;
create schema s;
create table s.t (a int);
insert into s.t values (1);
select * from s.t;
rollback;
select * from s.t;
create schema s;
create table s.t (a int);
drop schema s cascade;
----
BEGIN
CREATE SCHEMA
CREATE TABLE
INSERT 0 1
a:int4
1
ROLLBACK
ERROR 42P01: relation "s.t" does not exist [at 15]
CREATE SCHEMA
CREATE TABLE
NOTICE 00000: drop cascades to table s.t
DROP SCHEMA

# Renamed.
create schema a;
create table a.t (id int primary key);
insert into a.t values (1);
alter schema a rename to b;
select * from b.t;
select * from a.t;
alter schema b rename to public;
alter schema b rename to pg_b;
alter schema nope rename to x;
alter schema b owner to current_user;
drop schema b cascade;
----
CREATE SCHEMA
CREATE TABLE
INSERT 0 1
ALTER SCHEMA
id:int4
1
ERROR 42P01: relation "a.t" does not exist [at 15]
ERROR 42P06: schema "public" already exists
ERROR 42939: unacceptable schema name "pg_b"
DETAIL: The prefix "pg_" is reserved for system schemas.
ERROR 3F000: schema "nope" does not exist
ALTER SCHEMA
NOTICE 00000: drop cascades to table b.t
DROP SCHEMA

# What the catalog says.
create schema "My Schema";
create table "My Schema".t (id int primary key);
select 'My Schema.t'::regclass;
select '"My Schema".t'::regclass;
select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relname like 't%' and
n.nspname not like 'pg%' and n.nspname <> 'information_schema' order by 1, 2;
select schema_name from information_schema.schemata order by 1;
insert into "My Schema".t values (1), (1);
select current_schemas(true), current_schemas(false);
drop schema "My Schema" cascade;
----
CREATE SCHEMA
CREATE TABLE
ERROR 42602: invalid name syntax [at 8]
regclass:regclass
"My Schema".t
nspname:name|relname:name
My Schema|t
My Schema|t_pkey
schema_name:name
My Schema
information_schema
pg_catalog
public
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(1) already exists.
current_schemas:_name|current_schemas:_name
{pg_catalog,public}|{public}
NOTICE 00000: drop cascades to table "My Schema".t
DROP SCHEMA

create database shop;
create database shop;
create database shop2 with owner = ann encoding 'UTF8' template template0 connection limit = -1;
create database shop3 encoding 'LATIN1';
begin;
create database in_block;
rollback;
drop database shop2;
drop database postgres;
drop database nope;
drop database if exists nope;
select current_database();
----
CREATE DATABASE
ERROR 42P04: database "shop" already exists
CREATE DATABASE
ERROR 0A000: encoding LATIN1 is not supported [at 32]
BEGIN
ERROR 25001: CREATE DATABASE cannot run inside a transaction block
ROLLBACK
DROP DATABASE
ERROR 55006: cannot drop the currently open database
ERROR 3D000: database "nope" does not exist
NOTICE 00000: database "nope" does not exist, skipping
DROP DATABASE
current_database:name
postgres

# A type is visible if the search path finds it first.

create type mood as enum ('sad', 'ok');
create domain short as text check (length(value) < 4);
create schema types;
create type types.mood as enum ('far');
create type types.lone as enum ('there');
select n.nspname, t.typname, pg_type_is_visible(t.oid), pg_type_is_visible(t.typarray) from pg_type t join pg_namespace n on n.oid = t.typnamespace where t.typname in ('mood', 'short', 'lone', 'int4') order by 1, 2;
set search_path = types, public;
select n.nspname, t.typname, pg_type_is_visible(t.oid) from pg_type t join pg_namespace n on n.oid = t.typnamespace where t.typname in ('mood', 'short', 'lone') order by 1, 2;
select pg_type_is_visible(1), pg_my_temp_schema();
create temp table own (a int);
select pg_my_temp_schema() = relnamespace, pg_my_temp_schema()::regnamespace::text like 'pg_temp_%' from pg_class where relname = 'own';
----
CREATE TYPE
CREATE DOMAIN
CREATE SCHEMA
CREATE TYPE
CREATE TYPE
nspname:name|typname:name|pg_type_is_visible:bool|pg_type_is_visible:bool
pg_catalog|int4|t|t
public|mood|t|t
public|short|t|t
types|lone|f|f
types|mood|f|f
SET
nspname:name|typname:name|pg_type_is_visible:bool
public|mood|f
public|short|t
types|lone|t
types|mood|t
pg_type_is_visible:bool|pg_my_temp_schema:oid
NULL|0
CREATE TABLE
?column?:bool|?column?:bool
t|t

# The name of the session's database may precede that of a schema.

reset search_path;
create schema far;
create table postgres.far.d (a int primary key, b int check (b > 0));
create type postgres.far.mood as enum ('x');
create view postgres.far.v as select postgres.far.d.a from postgres.far.d;
create index on postgres.far.d (b);
insert into postgres.far.d values (1, 2);
select postgres.far.d.b, postgres.far.d.*, far.d.a from postgres.far.d;
select * from postgres.far.v;
select 'x'::postgres.far.mood, '7'::postgres.pg_catalog.int4, postgres.pg_catalog.lower('A');
select 'postgres.far.d'::regclass, 'postgres.far.mood'::regtype;
select count(*) from postgres.pg_catalog.pg_class where relname = 'pg_class';
comment on column postgres.far.d.b is 'some';
alter table postgres.far.d alter b set not null;
select * from x.far.d;
select * from a.b.c.d;
select x.far.d.a from far.d;
select x.far.d.* from far.d;
select y.x.far.d.a from far.d;
select 1::x.pg_catalog.int4;
select 'x.pg_catalog.int4'::regtype;
select x.pg_catalog.lower('A');
select 'a.b.c.d'::regclass;
create table x.far.e (a int);
create view x.far.e as select 1;
create type x.far.e as enum ('a');
create domain x.far.e as int;
insert into x.far.d values (1);
update x.far.d set a = 1;
alter table x.far.d add c int;
alter type x.far.mood add value 'y';
create index on x.far.d (a);
drop table x.far.d;
drop type x.far.mood;
drop view postgres.far.v;
drop table postgres.far.d;
drop type postgres.far.mood;
----
RESET
CREATE SCHEMA
CREATE TABLE
CREATE TYPE
CREATE VIEW
CREATE INDEX
INSERT 0 1
b:int4|a:int4|b:int4|a:int4
2|1|2|1
a:int4
1
mood:enum|int4:int4|lower:text
x|7|a
regclass:regclass|regtype:regtype
far.d|far.mood
count:int8
1
COMMENT
ALTER TABLE
ERROR 0A000: cross-database references are not implemented: "x.far.d" [at 15]
ERROR 42601: improper qualified name (too many dotted names): a.b.c.d [at 15]
ERROR 0A000: cross-database references are not implemented: x.far.d.a [at 8]
ERROR 0A000: cross-database references are not implemented: x.far.d.* [at 8]
ERROR 42601: improper qualified name (too many dotted names): y.x.far.d.a [at 8]
ERROR 0A000: cross-database references are not implemented: x.pg_catalog.int4
ERROR 0A000: cross-database references are not implemented: x.pg_catalog.int4 [at 8]
ERROR 0A000: cross-database references are not implemented: x.pg_catalog.lower [at 8]
ERROR 42601: improper relation name (too many dotted names): a.b.c.d [at 8]
ERROR 0A000: cross-database references are not implemented: "x.far.e" [at 14]
ERROR 0A000: cross-database references are not implemented: "x.far.e"
ERROR 0A000: cross-database references are not implemented: x.far.e
ERROR 0A000: cross-database references are not implemented: x.far.e
ERROR 0A000: cross-database references are not implemented: "x.far.d" [at 13]
ERROR 0A000: cross-database references are not implemented: "x.far.d" [at 8]
ERROR 0A000: cross-database references are not implemented: "x.far.d"
ERROR 0A000: cross-database references are not implemented: x.far.mood
ERROR 0A000: cross-database references are not implemented: "x.far.d"
ERROR 0A000: cross-database references are not implemented: "x.far.d"
ERROR 0A000: cross-database references are not implemented: x.far.mood
DROP VIEW
DROP TABLE
DROP TYPE

# SET SCHEMA: indexes, constraints and owned sequences move with their table.

create schema s;
create schema r;
create table moved (a serial primary key, b int unique, c int, constraint pos check (c > 0));
create index moved_c on moved (c);
create table child (a int primary key, m int references moved);
alter table moved set schema nope;
alter table nope set schema s;
alter table if exists nope set schema s;
alter table nope.moved set schema s;
alter table moved set schema public;
alter table moved set schema s;
select * from moved;
select relname, relkind from pg_class where relnamespace = 's'::regnamespace order by 1;
select conname from pg_constraint where connamespace = 's'::regnamespace order by 1;
insert into s.moved (b, c) values (1, 2) returning *;
insert into child values (1, 1), (2, 7);
create table moved (a int);
alter table moved set schema s;
create table r.moved_c (a int);
alter table s.moved set schema r;
drop table r.moved_c;
create sequence r.moved_a_seq;
alter table s.moved set schema r;
drop sequence r.moved_a_seq;
create type r.moved as enum ('a');
alter table s.moved set schema r;
drop type r.moved;
begin;
alter table only s.moved set schema r;
insert into r.moved (b) values (3) returning a;
rollback;
select count(*) from s.moved;
alter sequence s.moved_a_seq set schema r;
alter table s.moved_c set schema r;
alter view s.moved set schema r;
alter sequence s.moved set schema r;
alter table pg_class set schema s;
alter table s.moved set schema pg_temp;
alter table own set schema s;
alter table s.moved set schema pg_toast;
alter table s.moved set schema s.r;
drop table child, moved, s.moved;
----
CREATE SCHEMA
CREATE SCHEMA
CREATE TABLE
CREATE INDEX
CREATE TABLE
ERROR 3F000: schema "nope" does not exist
ERROR 42P01: relation "nope" does not exist
NOTICE 00000: relation "nope" does not exist, skipping
ALTER TABLE
ERROR 3F000: schema "nope" does not exist
ALTER TABLE
ALTER TABLE
ERROR 42P01: relation "moved" does not exist [at 15]
relname:name|relkind:char
moved|r
moved_a_seq|S
moved_b_key|i
moved_c|i
moved_pkey|i
conname:name
moved_b_key
moved_pkey
pos
a:int4|b:int4|c:int4
1|1|2
INSERT 0 1
ERROR 23503: insert or update on table "child" violates foreign key constraint "child_m_fkey"
DETAIL: Key (m)=(7) is not present in table "moved".
CREATE TABLE
ERROR 42P07: relation "moved" already exists in schema "s"
CREATE TABLE
ERROR 42P07: relation "moved_c" already exists in schema "r"
DROP TABLE
CREATE SEQUENCE
ERROR 42P07: relation "moved_a_seq" already exists in schema "r"
DROP SEQUENCE
CREATE TYPE
ERROR 42710: type "moved" already exists in schema "r"
DROP TYPE
BEGIN
ALTER TABLE
a:int4
2
INSERT 0 1
ROLLBACK
count:int8
1
ERROR 0A000: cannot move an owned sequence into another schema
DETAIL: Sequence "moved_a_seq" is linked to table "moved".
ERROR 42809: cannot change schema of index "moved_c"
HINT: Change the schema of the table instead.
ERROR 42809: "moved" is not a view
ERROR 42809: "moved" is not a sequence
ERROR 42501: permission denied: "pg_class" is a system catalog
ERROR 0A000: cannot move objects into or out of temporary schemas
ERROR 0A000: cannot move objects into or out of temporary schemas
ERROR 0A000: cannot move objects into or out of TOAST schema
ERROR 42601: syntax error at or near "." [at 33]
DROP TABLE

# Views, sequences and types move too.

create view shown as select 1 as a;
create sequence drawn;
create type kind as enum ('x');
create domain even as int check (value % 2 = 0);
create table typed (a kind default 'x', b even, c int default nextval('drawn'));
alter view shown set schema s;
alter table s.shown set schema r;
alter view if exists nope set schema s;
alter sequence drawn set schema s;
alter type kind set schema s;
alter domain even set schema s;
insert into typed (b) values (2) returning *;
insert into typed (b) values (3);
select * from r.shown;
select 'x'::kind;
alter domain s.kind set schema r;
alter type nope set schema s;
create type kind as enum ('y');
alter type kind set schema s;
alter type s.even set schema public;
drop table typed;
drop sequence s.drawn;
drop type s.kind;
drop view r.shown;
drop schema s, r, far;
----
CREATE VIEW
CREATE SEQUENCE
CREATE TYPE
CREATE DOMAIN
CREATE TABLE
ALTER VIEW
ALTER TABLE
NOTICE 00000: relation "nope" does not exist, skipping
ALTER VIEW
ALTER SEQUENCE
ALTER TYPE
ALTER DOMAIN
a:enum|b:int4|c:int4
x|2|1
INSERT 0 1
ERROR 23514: value for domain s.even violates check constraint "even_check"
a:int4
1
ERROR 42704: type "kind" does not exist [at 13]
ERROR 42809: s.kind is not a domain
ERROR 42704: type "nope" does not exist
CREATE TYPE
ERROR 42710: type "kind" already exists in schema "s"
ALTER TYPE
DROP TABLE
DROP SEQUENCE
DROP TYPE
DROP VIEW
DROP SCHEMA

# What a view names stays where it is: PostgreSQL moves it.

create schema s;
create table read (a int);
create view reader as select a from read;
alter table read set schema s;
drop view reader;
alter table read set schema s;
----
CREATE SCHEMA
CREATE TABLE
CREATE VIEW
ERROR 0A000: a new schema for a table that a view names is not supported yet
DETAIL: The view reader names it.
DROP VIEW
ALTER TABLE
