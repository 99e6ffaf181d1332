# CREATE TABLE, DROP TABLE, TRUNCATE.
create table t (a int, b text);
----
CREATE TABLE

create table t (a int);
----
ERROR 42P07: relation "t" already exists

create table if not exists t (a int);
----
NOTICE 42P07: relation "t" already exists, skipping
CREATE TABLE

create table T (a int);
----
ERROR 42P07: relation "t" already exists

create table "T" (a int);
----
CREATE TABLE

select * from "T";
----
a:int4

create table u (a int, a text);
----
ERROR 42701: column "a" specified more than once

create table u (a nosuch);
----
ERROR 42704: type "nosuch" does not exist [at 19]

create table u (a int primary key, b int primary key);
----
ERROR 42P16: multiple primary keys for table "u" are not allowed [at 42]

create table u (a int primary key, primary key (a));
----
ERROR 42P16: multiple primary keys for table "u" are not allowed [at 36]

create table u (a int, primary key (b));
----
ERROR 42703: column "b" named in key does not exist [at 24]

create table u (a int, primary key (a, a));
----
ERROR 42701: column "a" appears twice in primary key constraint [at 24]

create table u (a int null not null);
----
ERROR 42601: conflicting NULL/NOT NULL declarations for column "a" of table "u" [at 28]

create table u (a int default 'x');
----
ERROR 22P02: invalid input syntax for type integer: "x" [at 31]

create table u (a int default true);
----
ERROR 42804: column "a" is of type integer but default expression is of type boolean
HINT: You will need to rewrite or cast the expression.

create table u (a int default b, b int);
----
ERROR 0A000: cannot use column reference in DEFAULT expression [at 31]

create table u (a int default count(*));
----
ERROR 42803: aggregate functions are not allowed in DEFAULT expressions [at 31]

create table nosuch.u (a int);
----
ERROR 3F000: schema "nosuch" does not exist [at 14]

create table public.u (a int constraint mykey primary key, b varchar(3) default 'abcd');
----
CREATE TABLE

insert into u values (1);
----
ERROR 22001: value too long for type character varying(3)

insert into u values (1, 'x');
----
INSERT 0 1

insert into u values (1, 'x');
----
ERROR 23505: duplicate key value violates unique constraint "mykey"
DETAIL: Key (a)=(1) already exists.

create table v ();
----
CREATE TABLE

select * from v;
----
(no columns)

create table w (a int default 1 + 1, b timestamptz default now(),
c text default 'it''s', d bool default false, e int default null) with (fillfactor=50);
----
CREATE TABLE

insert into w default values returning a, b is not null, c, d, e;
----
a:int4|?column?:bool|c:text|d:bool|e:int4
2|t|it's|f|NULL
INSERT 0 1

create table w2 (a int) with (nosuch=1);
----
ERROR 22023: unrecognized parameter "nosuch"

drop table nope;
----
ERROR 42P01: table "nope" does not exist

drop table if exists nope;
----
NOTICE 00000: table "nope" does not exist, skipping
DROP TABLE

drop table t, nope;
----
ERROR 42P01: table "nope" does not exist

drop table if exists nope, "T";
----
NOTICE 00000: table "nope" does not exist, skipping
DROP TABLE

drop table t;
----
DROP TABLE

select * from t;
----
ERROR 42P01: relation "t" does not exist [at 15]

drop table t;
----
ERROR 42P01: table "t" does not exist

create table t (x int8 primary key);
----
CREATE TABLE

insert into t values (1), (2);
----
INSERT 0 2

truncate t;
----
TRUNCATE TABLE

select * from t;
----
x:int8

insert into t values (1);
----
INSERT 0 1

truncate table t, u;
----
TRUNCATE TABLE

truncate nope;
----
ERROR 42P01: relation "nope" does not exist

select count(*) from u;
----
count:int8
0

begin;
----
BEGIN

create table inside (a int primary key);
----
CREATE TABLE

insert into inside values (1);
----
INSERT 0 1

select * from inside;
----
a:int4
1

rollback;
----
ROLLBACK

select * from inside;
----
ERROR 42P01: relation "inside" does not exist [at 15]

begin;
----
BEGIN

create table inside (a int primary key);
----
CREATE TABLE

insert into inside values (1), (2);
----
INSERT 0 2

drop table t;
----
DROP TABLE

truncate inside;
----
TRUNCATE TABLE

insert into inside values (3);
----
INSERT 0 1

commit;
----
COMMIT

select * from inside;
----
a:int4
3

select * from t;
----
ERROR 42P01: relation "t" does not exist [at 15]

create table user (a int);
----
ERROR 42601: syntax error at or near "user" [at 14]

create table r (select int);
----
ERROR 42601: syntax error at or near "select" [at 17]

create table c1 (a text collate "C", b varchar collate "default");
----
CREATE TABLE

create table c2 (a int collate "C");
----
ERROR 42804: collations are not supported by type integer [at 24]

# A DEFAULT is stored as its source text. Printed from its tree it was another expression, or invalid.
create table quotes (id int primary key, a text default 'x''''y', b text default '\', c int default - -5,
d text default E'\'\n', e float8 default - 2 ^ 2, f text default 'one'
'two', g bool default (1 = 2) is null, h text not null default 'z' -- ok
);
----
CREATE TABLE

insert into quotes (id) values (1);
----
INSERT 0 1

select a, b, c, d = E'\'\n', e, f, g, h from quotes;
----
a:text|b:text|c:int4|?column?:bool|e:float8|f:text|g:bool|h:text
x''y|\|5|t|4|onetwo|f|z

insert into quotes values (2, default, 'b', default) returning id, a, b, c, h;
----
id:int4|a:text|b:text|c:int4|h:text
2|x''y|b|5|z
INSERT 0 1

insert into quotes default values;
----
ERROR 23502: null value in column "id" of relation "quotes" violates not-null constraint
DETAIL: Failing row contains (null, x''y, \, 5, '
, 4, onetwo, f, z).

create table bad (a int default $1);
----
ERROR 42P02: there is no parameter $1 [at 33]

create table bad (a int default 'x');
----
ERROR 22P02: invalid input syntax for type integer: "x" [at 33]

create table bad (a int default b, b int);
----
ERROR 0A000: cannot use column reference in DEFAULT expression [at 33]

# UNLOGGED has no effect.
create unlogged table unlogged (a int primary key);
insert into unlogged values (1);
create unlogged table unlogged (a int);
drop table unlogged;
----
CREATE TABLE
INSERT 0 1
ERROR 42P07: relation "unlogged" already exists
DROP TABLE

# Commands of PostgreSQL that do not exist here.
create function f() returns int language sql as 'select 1';
create or replace function f() returns int as $$ begin; return 1; end $$ language plpgsql;
create trigger x after insert on t execute function f();
create extension if not exists pgcrypto;
create type mood as enum ('a');
create domain d as int check (value > 0);
create materialized view v as select 1;
create role ann login;
alter table t add column z int;
alter system set a = 1;
drop function f;
drop extension pgcrypto;
grant select on t to ann;
revoke all on t from ann;
comment on table t is 'x';
lock table t;
do $$ begin end $$;
call p();
merge into t using u on true when matched then delete;
reindex table t;
cluster t;
refresh materialized view v;
checkpoint;
security label on table t is 'x';
----
ERROR 0A000: CREATE FUNCTION is not supported yet
ERROR 0A000: CREATE FUNCTION is not supported yet
ERROR 0A000: CREATE TRIGGER is not supported yet
ERROR 0A000: CREATE EXTENSION is not supported yet
CREATE TYPE
CREATE DOMAIN
ERROR 0A000: CREATE MATERIALIZED VIEW is not supported yet [at 26]
ERROR 0A000: CREATE ROLE is not supported yet
ERROR 42P01: relation "t" does not exist
ERROR 42704: unrecognized configuration parameter "a"
ERROR 0A000: DROP FUNCTION is not supported yet
ERROR 0A000: DROP EXTENSION is not supported yet
ERROR 0A000: GRANT is not supported yet
ERROR 0A000: REVOKE is not supported yet
ERROR 42P01: relation "t" does not exist
ERROR 0A000: LOCK is not supported yet
ERROR 0A000: DO is not supported yet
ERROR 0A000: CALL is not supported yet [at 6]
ERROR 0A000: MERGE is not supported yet [at 1]
ERROR 0A000: REINDEX is not supported yet
ERROR 0A000: CLUSTER is not supported yet
ERROR 0A000: REFRESH is not supported yet
CHECKPOINT
ERROR 0A000: SECURITY is not supported yet

# Mistakes in commands that do exist.
create tabel t (a int);
create table t (;
----
ERROR 42601: syntax error at or near "tabel" [at 8]
ERROR 42601: syntax error at or near ";" [at 17]

# Keys are looked at before defaults, checks and foreign keys after them.
create table dd (a int default 1 default 2);
----
ERROR 42601: multiple default values specified for column "a" of table "dd" [at 34]

create table dd (a int default 'x'::date, unique (nope));
----
ERROR 42703: column "nope" named in key does not exist [at 43]

create table dd (a int default 'x'::date, primary key (nope));
----
ERROR 42703: column "nope" named in key does not exist [at 43]

create table dd (a int default 'x'::date, check (nope > 1));
----
ERROR 22007: invalid input syntax for type date: "x" [at 32]

create table dd (a int, b int generated always as (nope) stored, c int default 'x'::date);
----
ERROR 42703: column "nope" does not exist [at 52]

create table dd (a int default 'x'::date, foreign key (nope) references dd2);
----
ERROR 22007: invalid input syntax for type date: "x" [at 32]

create table dd (a int default pg_catalog."int4"(null), b int default 2, c int generated always as (b + 1) stored, d int default 4);
----
CREATE TABLE

select attname, pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum where adrelid = 'dd'::regclass order by attnum;
----
attname:name|pg_get_expr:text
b|2
c|(b + 1)
d|4

drop table dd;
----
DROP TABLE
