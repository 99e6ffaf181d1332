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
