# Temporary tables, views and sequences: of one session, and gone with it.

create temp table t (a int primary key, b text default 'x');
insert into t values (1), (2);
select * from t order by a;
create table t (a int, c int);
insert into public.t values (7, 8);
select * from t order by a;
select * from public.t;
select * from pg_temp.t order by a;
create temporary table t (z int);
create temp table if not exists t (z int);
create table pg_temp.u (a int);
create temp table pg_temp.w (a int);
create temp table public.w (a int);
select relname, relpersistence, relkind from pg_class where relname in ('t', 'u', 'w', 't_pkey') order by 1, 2;
select table_name, table_type from information_schema.tables where table_name in ('t', 'u') order by 1, 2;
select current_schema(), (current_schemas(true))[1] like 'pg\_temp\_%' as temporary, (current_schemas(false))[1];
drop table t;
select * from t;
drop table t;
----
CREATE TABLE
INSERT 0 2
a:int4|b:text
1|x
2|x
CREATE TABLE
INSERT 0 1
a:int4|b:text
1|x
2|x
a:int4|c:int4
7|8
a:int4|b:text
1|x
2|x
ERROR 42P07: relation "t" already exists
NOTICE 42P07: relation "t" already exists, skipping
CREATE TABLE
CREATE TABLE
CREATE TABLE
ERROR 42P16: cannot create temporary relation in non-temporary schema [at 19]
relname:name|relpersistence:char|relkind:char
t|p|r
t|t|r
t_pkey|t|i
u|t|r
w|t|r
table_name:name|table_type:varchar
t|BASE TABLE
t|LOCAL TEMPORARY
u|LOCAL TEMPORARY
current_schema:name|temporary:bool|current_schemas:name
public|t|public
DROP TABLE
a:int4|c:int4
7|8
DROP TABLE

# Serial columns, indexes, sequences, views, foreign keys.
create temp table p (id serial primary key, v int unique);
create temp table c (id int generated always as identity, p int references p on delete cascade);
insert into p (v) values (10), (20) returning *;
insert into c (p) values (1), (2) returning *;
delete from p where id = 1;
select * from c;
create index on p (v);
create temp sequence s;
select nextval('s'), nextval('pg_temp.s');
create view v as select * from p;
select * from v;
create temp view tv as select 1 as one;
select * from tv;
create table perm (id int primary key, p int references p);
create table perm (id int primary key);
create temp table x (p int references perm);
alter table p add n numeric default 1.5;
select * from p;
select relname, relkind from pg_class where relpersistence = 't' and relkind in ('v', 'S') order by 1;
create temp table made as select g from generate_series(1, 3) g;
select count(*) from made;
select 5 as five into temp table made2;
select * from made2;
----
CREATE TABLE
CREATE TABLE
id:int4|v:int4
1|10
2|20
INSERT 0 2
id:int4|p:int4
1|1
2|2
INSERT 0 2
DELETE 1
id:int4|p:int4
2|2
CREATE INDEX
CREATE SEQUENCE
nextval:int8|nextval:int8
1|2
NOTICE 00000: view "v" will be a temporary view
CREATE VIEW
id:int4|v:int4
2|20
CREATE VIEW
one:int4
1
ERROR 42P16: constraints on permanent tables may reference only permanent tables
CREATE TABLE
ERROR 42P16: constraints on temporary tables may reference only temporary tables
ALTER TABLE
id:int4|v:int4|n:numeric
2|20|1.5
relname:name|relkind:char
c_id_seq|S
p_id_seq|S
s|S
tv|v
v|v
count:int8
3
five:int4
5

# ON COMMIT.
create temp table gone (a int) on commit drop;
select * from gone;
begin;
create temp table gone (a int) on commit drop;
create temp table emptied (a int) on commit delete rows;
create temp table kept (a int) on commit preserve rows;
insert into gone values (1);
insert into emptied values (1);
insert into kept values (1);
select (select count(*) from gone), (select count(*) from emptied), (select count(*) from kept);
commit;
select * from gone;
select (select count(*) from emptied), (select count(*) from kept);
insert into emptied values (2);
select count(*) from emptied;
begin;
insert into emptied values (3);
savepoint s1;
insert into emptied values (4);
rollback to s1;
select * from emptied;
commit;
select count(*) from emptied;
create table not_temporary (a int) on commit drop;
begin;
create temp table undone (a int);
insert into undone values (1);
rollback;
select * from undone;
create temp table undone (a int);
select * from undone;
----
CREATE TABLE
ERROR 42P01: relation "gone" does not exist [at 15]
BEGIN
CREATE TABLE
CREATE TABLE
CREATE TABLE
INSERT 0 1
INSERT 0 1
INSERT 0 1
count:int8|count:int8|count:int8
1|1|1
COMMIT
ERROR 42P01: relation "gone" does not exist [at 15]
count:int8|count:int8
0|1
INSERT 0 1
count:int8
0
BEGIN
INSERT 0 1
SAVEPOINT
INSERT 0 1
ROLLBACK
a:int4
3
COMMIT
count:int8
0
ERROR 42P16: ON COMMIT can only be used on temporary tables
BEGIN
CREATE TABLE
INSERT 0 1
ROLLBACK
ERROR 42P01: relation "undone" does not exist [at 15]
CREATE TABLE
a:int4

# Of one session.
\session other
select * from kept;
create temp table kept (b text);
insert into kept values ('mine');
select * from kept;
\session main
select * from kept;
discard temp;
select * from kept;
create temp table kept (c int);
select count(*) from kept;
discard all;
select * from kept;
\session other
select * from kept;
----
ERROR 42P01: relation "kept" does not exist [at 15]
CREATE TABLE
INSERT 0 1
b:text
mine
a:int4
1
DISCARD TEMP
ERROR 42P01: relation "kept" does not exist [at 15]
CREATE TABLE
count:int8
0
DISCARD ALL
ERROR 42P01: relation "kept" does not exist [at 15]
b:text
mine
