# Schemas, the search path, databases.

create schema app;
create schema app;
create schema if not exists app;
create schema pg_x;
create schema authorization ann;
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

# A plan follows the search path.
drop schema ann;
select * from t;
set search_path to app;
select * from t;
set search_path to public;
select * from t;
----

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
