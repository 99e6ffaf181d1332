# COMMENT, and where comments are shown.
create schema app;
create table c (id int primary key, b text unique, n int check (n > 0), constraint c_self foreign key (n) references c);
create table app.d (x int);
create index c_n on c (n);
create view v as select id, b from c;
create sequence s;
create type mood as enum ('sad', 'happy');
comment on table c is 'a table';
comment on column c.b is 'its column';
comment on column public.c.n is 'another one';
comment on index c_n is 'an index';
comment on index c_pkey is 'the index of a key';
comment on constraint c_pkey on c is 'the key';
comment on constraint c_n_check on public.c is 'a check';
comment on constraint c_self on c is 'a foreign key';
comment on view v is 'a view';
comment on column v.b is 'a column of a view';
comment on sequence s is 'a sequence';
comment on schema app is E'a schema\nof two lines';
comment on table app.d is $$it's in a schema$$;
comment on type mood is 'an enum';
comment on database postgres is 'a database';
select obj_description('c'::regclass), col_description('c'::regclass, 2), col_description('c'::regclass, 1), obj_description('c'::regclass, 'pg_class'), obj_description('c'::regclass, 'pg_type');
----
CREATE SCHEMA
CREATE TABLE
CREATE TABLE
CREATE INDEX
CREATE VIEW
CREATE SEQUENCE
CREATE TYPE
COMMENT
COMMENT
COMMENT
COMMENT
COMMENT
COMMENT
COMMENT
COMMENT
COMMENT
COMMENT
COMMENT
COMMENT
COMMENT
COMMENT
COMMENT
obj_description:text|col_description:text|col_description:text|obj_description:text|obj_description:text
a table|its column|NULL|a table|NULL

select obj_description('c_n'::regclass), obj_description('v'::regclass), col_description('v'::regclass, 2), obj_description('s'::regclass, 'pg_class'), obj_description('app'::regnamespace, 'pg_namespace'), obj_description('app.d'::regclass, 'pg_class');
----
obj_description:text|obj_description:text|col_description:text|obj_description:text|obj_description:text|obj_description:text
an index|a view|a column of a view|a sequence|a schema
of two lines|it's in a schema

select conname, obj_description(oid, 'pg_constraint') from pg_constraint where conrelid = 'c'::regclass order by 1;
----
conname:name|obj_description:text
c_b_key|NULL
c_n_check|a check
c_pkey|the key
c_self|a foreign key

select obj_description('c_pkey'::regclass, 'pg_class'), obj_description('mood'::regtype, 'pg_type'), obj_description('int4'::regtype, 'pg_type'), obj_description(2200, 'pg_namespace'), obj_description(1, 'nothing'), obj_description(null, 'pg_class');
----
obj_description:text|obj_description:text|obj_description:text|obj_description:text|obj_description:text|obj_description:text
the index of a key|an enum|-2 billion to 2 billion integer, 4-byte storage|standard public schema|NULL|NULL

select shobj_description(oid, 'pg_database') from pg_database where datname = 'postgres';
----
shobj_description:text
a database

select classoid::regclass, objsubid, description from pg_description where objoid >= 16384 order by 1, 2, 3;
----
classoid:regclass|objsubid:int4|description:text
pg_type|0|an enum
pg_class|0|a sequence
pg_class|0|a table
pg_class|0|a view
pg_class|0|an index
pg_class|0|it's in a schema
pg_class|0|the index of a key
pg_class|2|a column of a view
pg_class|2|its column
pg_class|3|another one
pg_constraint|0|a check
pg_constraint|0|a foreign key
pg_constraint|0|the key
pg_namespace|0|a schema
of two lines

select count(*) from pg_shdescription d join pg_database b on b.oid = d.objoid and d.classoid = 'pg_database'::regclass;
----
count:int8
1

# They change, go, and go with their objects.
comment on table c is 'a better text';
comment on column c.b is null;
comment on view v is '';
select obj_description('c'::regclass), col_description('c'::regclass, 2), obj_description('v'::regclass);
----
COMMENT
COMMENT
COMMENT
obj_description:text|col_description:text|obj_description:text
a better text|NULL|NULL

drop view v;
alter table c rename to c2;
alter table c2 rename column n to m;
select obj_description('c2'::regclass), col_description('c2'::regclass, 3);
----
DROP VIEW
ALTER TABLE
ALTER TABLE
obj_description:text|col_description:text
a better text|another one

alter table c2 drop constraint c_n_check;
drop index c_n;
alter table c2 drop column m;
drop sequence s;
select classoid::regclass, objsubid, description from pg_description where objoid >= 16384 order by 1, 2, 3;
----
ALTER TABLE
DROP INDEX
ALTER TABLE
DROP SEQUENCE
classoid:regclass|objsubid:int4|description:text
pg_type|0|an enum
pg_class|0|a better text
pg_class|0|it's in a schema
pg_class|0|the index of a key
pg_constraint|0|the key
pg_namespace|0|a schema
of two lines

begin;
comment on table c2 is 'for a while';
select obj_description('c2'::regclass);
rollback;
select obj_description('c2'::regclass);
----
BEGIN
COMMENT
obj_description:text
for a while
ROLLBACK
obj_description:text
a better text

begin;
savepoint a;
comment on table c2 is 'for a while';
rollback to a;
commit;
select obj_description('c2'::regclass);
----
BEGIN
SAVEPOINT
COMMENT
ROLLBACK
COMMIT
obj_description:text
a better text

drop table c2;
drop schema app cascade;
drop type mood;
select description from pg_description where objoid >= 16384;
----
DROP TABLE
NOTICE 00000: drop cascades to table app.d
DROP SCHEMA
DROP TYPE
description:text

# Errors.
create table t (a int);
create view w as select 1 as one;
comment on table nope is 'x';
----
CREATE TABLE
CREATE VIEW
ERROR 42P01: relation "nope" does not exist

comment on table w is 'x';
----
ERROR 42809: "w" is not a table

comment on view t is 'x';
----
ERROR 42809: "t" is not a view

comment on index t is 'x';
----
ERROR 42809: "t" is not an index

comment on sequence t is 'x';
----
ERROR 42809: "t" is not a sequence

comment on column t.nope is 'x';
----
ERROR 42703: column "nope" of relation "t" does not exist

comment on column nope.a is 'x';
----
ERROR 42P01: relation "nope" does not exist

comment on column a is 'x';
----
ERROR 42601: column name must be qualified

comment on constraint nope on t is 'x';
----
ERROR 42704: constraint "nope" for table "t" does not exist

comment on constraint nope on nope is 'x';
----
ERROR 42P01: relation "nope" does not exist

comment on schema nope is 'x';
----
ERROR 3F000: schema "nope" does not exist

comment on database nope is 'x';
----
WARNING 3D000: database "nope" does not exist
COMMENT

comment on role postgres is 'x';
----
ERROR 0A000: COMMENT ON ROLE is not supported yet [at 17]

comment on table pg_class is 'x';
----
ERROR 0A000: a comment on a relation of the system is not supported yet [at 18]

comment on table t is 5;
----
ERROR 42601: syntax error at or near "5" [at 23]

# Sequences of columns.
create table owner (a serial, b int generated always as identity);
select classid::regclass, objid::regclass, refobjid::regclass, refobjsubid, deptype from pg_depend where refobjid = 'owner'::regclass and classid = 'pg_class'::regclass order by 2;
----
CREATE TABLE
classid:regclass|objid:regclass|refobjid:regclass|refobjsubid:int4|deptype:char
pg_class|owner_a_seq|owner|1|a
pg_class|owner_b_seq|owner|2|i

# Domains and their checks.
create domain cd as int constraint cc check (value > 0);
create type ce as enum ('a');
comment on domain cd is 'a domain';
comment on constraint cc on domain cd is 'its check';
select obj_description('cd'::regtype, 'pg_type'), (select obj_description(oid, 'pg_constraint') from pg_constraint where conname = 'cc');
comment on constraint nope on domain cd is 'x';
comment on domain int4 is 'x';
comment on domain nope is 'x';
comment on constraint nope on domain nope is 'x';
comment on domain ce is 'x';
comment on domain t is 'x';
alter domain cd drop constraint cc;
select classoid::regclass, objsubid, description from pg_description where objoid >= 16384 order by 1, 2, 3;
alter domain cd add constraint cd check (value > 1);
comment on constraint cd on domain cd is 'another';
drop domain cd;
select classoid::regclass, objsubid, description from pg_description where objoid >= 16384 order by 1, 2, 3;
----
CREATE DOMAIN
CREATE TYPE
COMMENT
COMMENT
obj_description:text|obj_description:text
a domain|its check
ERROR 42704: constraint "nope" for domain cd does not exist
ERROR 42809: "int4" is not a domain
ERROR 42704: type "nope" does not exist
ERROR 42704: type "nope" does not exist
ERROR 42809: "ce" is not a domain
ERROR 42809: "t" is not a domain
ALTER DOMAIN
classoid:regclass|objsubid:int4|description:text
pg_type|0|a domain
ALTER DOMAIN
COMMENT
DROP DOMAIN
classoid:regclass|objsubid:int4|description:text

comment on domain cd is 5;
----
ERROR 42601: syntax error at or near "5" [at 25]
