# CREATE TABLE AS and SELECT INTO.
create table s (id int primary key, v varchar(5) not null default 'dd', n numeric(6, 2) check (n > 0), unique (v, n));
insert into s values (1, 'one', 1.5), (2, 'two', 2.25), (3, 'three', null);
create table a as select * from s where id < 3;
create table a2 (x, y) as select id, v || '!' from s order by id;
create table a3 (x) as values (1, 'p'), (2, 'q');
create table a4 as with w as (select count(*) as c, max(v) from s) select c, max as m, null as u from w;
create table if not exists a4 as select 1;
create table a4 as select 1;
create table a5 (x, y, z) as select 1, 2;
create table a5 as select 1 as x, 2 as x;
select 7 as seven, v into b from s where id = 2;
select * into b from s;
select 1 into b2 union select 2 order by 1;
insert into s select * from (select 1 into nope) as x;
select * from a order by id;
insert into a values (null, null, -1);
select * from a2 order by x;
select * from a3 order by x;
select * from a4;
select * from b;
select count(*) from b2;
begin;
create table a7 as select id * 10 as id from s;
insert into a7 select id + 1 from a7;
create table a8 as select * from a7;
select * from a8 order by id;
rollback;
select * from a7;
----
CREATE TABLE
INSERT 0 3
NOTICE 42P07: relation "a4" already exists, skipping
CREATE TABLE AS
ERROR 42P07: relation "a4" already exists
ERROR 42601: too many column names were specified
ERROR 42701: column "x" specified more than once
ERROR 42P07: relation "b" already exists
ERROR 42601: SELECT ... INTO is not allowed here [at 44]
id:int4|v:varchar|n:numeric
1|one|1.50
2|two|2.25
INSERT 0 1
x:int4|y:text
1|one!
2|two!
3|three!
x:int4|column2:text
1|p
2|q
c:int8|m:text|u:text
3|two|NULL
seven:int4|v:varchar
7|two
count:int8
2
BEGIN
INSERT 0 3
id:int4
10
11
20
21
30
31
ROLLBACK
ERROR 42P01: relation "a7" does not exist [at 15]

# Explained.
explain create table a6 as select * from s where id = 1;
explain analyze select 1 into a6;
----
Point Get on s
  Key: (id = 1)
ERROR 0A000: EXPLAIN ANALYZE of this statement is not supported yet

# In a read-only transaction.
begin read only;
select 1 as x into zz;
rollback;
begin read only;
create table zz as select 1;
rollback;
begin read only;
with w as (select 1 as id) update s set v = 'x' from w where w.id = s.id;
rollback;
select count(*) from s where v = 'x';
----
BEGIN
ERROR 25006: cannot execute SELECT INTO in a read-only transaction
ROLLBACK
BEGIN
ERROR 25006: cannot execute CREATE TABLE AS in a read-only transaction
ROLLBACK
BEGIN
ERROR 25006: cannot execute UPDATE in a read-only transaction
ROLLBACK
count:int8
0

# A larger one.
create table big as select i as id, 'row ' || i as t from generate_series(1, 5000) as i;
select count(*), min(t), max(id) from big;
----
count:int8|min:text|max:int4
5000|row 1|5000

# LIKE.
create table l0 (like s);
create table l1 (like s including all);
create table l2 (before int, like s including defaults including constraints, after int default 3);
create table l3 (like s including indexes excluding defaults, extra int primary key);
create table l4 (like s including all excluding indexes, like a2);
create table l5 (like s, like a);
create table l6 (like nope);
create table l7 (like public.s including storage including comments);
insert into l0 (id) values (1);
insert into l0 values (1, 'x', -1), (1, 'x', -1);
insert into l1 values (1, default, 0);
insert into l1 values (1, default, 1), (2, default, 1);
insert into l1 values (1, default, 1), (1, 'x', 1);
insert into l1 values (1, default, 1) returning *;
insert into l2 values (0, 1, default, 5) returning *;
insert into l2 values (0, 1, default, -5) returning *;
insert into l4 (id, n) values (1, 0);
insert into l4 (id, n, x) values (1, 2, 9), (1, 2, 9) returning *;
create table gen (a int, b int generated always as (a + 1) stored, check (gen.a > 0));
create table gen1 (like gen);
create table gen2 (like gen including generated);
create table gen3 (like gen including all);
insert into gen1 values (1, 1);
insert into gen2 values (1) returning *;
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
ERROR 42P16: multiple primary keys for table "l3" are not allowed
CREATE TABLE
ERROR 42701: column "id" specified more than once
ERROR 42P01: relation "nope" does not exist [at 23]
CREATE TABLE
ERROR 23502: null value in column "v" of relation "l0" violates not-null constraint
DETAIL: Failing row contains (1, null, null).
INSERT 0 2
ERROR 23514: new row for relation "l1" violates check constraint "s_n_check"
DETAIL: Failing row contains (1, dd, 0.00).
ERROR 23505: duplicate key value violates unique constraint "l1_v_n_key"
DETAIL: Key (v, n)=(dd, 1.00) already exists.
ERROR 23505: duplicate key value violates unique constraint "l1_pkey"
DETAIL: Key (id)=(1) already exists.
id:int4|v:varchar|n:numeric
1|dd|1.00
INSERT 0 1
before:int4|id:int4|v:varchar|n:numeric|after:int4
0|1|dd|5.00|3
INSERT 0 1
ERROR 23514: new row for relation "l2" violates check constraint "s_n_check"
DETAIL: Failing row contains (0, 1, dd, -5.00, 3).
ERROR 23514: new row for relation "l4" violates check constraint "s_n_check"
DETAIL: Failing row contains (1, dd, 0.00, null, null).
id:int4|v:varchar|n:numeric|x:int4|y:text
1|dd|2.00|9|NULL
1|dd|2.00|9|NULL
INSERT 0 2
CREATE TABLE
CREATE TABLE
CREATE TABLE
CREATE TABLE
INSERT 0 1
a:int4|b:int4
1|2
INSERT 0 1

# CREATE TABLE IF NOT EXISTS, and TRUNCATE of several tables.
create table if not exists s (a int references nope);
create table if not exists s2 (a int);
insert into s2 values (1);
truncate table s2, l0 restart identity;
truncate only l2 continue identity cascade;
select (select count(*) from s2), (select count(*) from l0), (select count(*) from l2);
truncate s2, nope;
----
NOTICE 42P07: relation "s" already exists, skipping
CREATE TABLE
CREATE TABLE
INSERT 0 1
TRUNCATE TABLE
TRUNCATE TABLE
count:int8|count:int8|count:int8
0|0|0
ERROR 42P01: relation "nope" does not exist

# The query is looked at before the name.
create table dd (a int);
----
CREATE TABLE

create table dd as select nope;
----
ERROR 42703: column "nope" does not exist [at 27]

create table if not exists dd as select nope;
----
ERROR 42703: column "nope" does not exist [at 41]

create table if not exists dd as select 1;
----
NOTICE 42P07: relation "dd" already exists, skipping
CREATE TABLE AS

create table dd as select 1;
----
ERROR 42P07: relation "dd" already exists

select nope into dd;
----
ERROR 42703: column "nope" does not exist [at 8]

select 1 into dd;
----
ERROR 42P07: relation "dd" already exists

drop table dd;
----
DROP TABLE

# LIKE INCLUDING IDENTITY copies the options of the sequence.
create table counted (x int, id int generated always as identity (start 100 increment 5 maxvalue 1000 cycle), d smallint generated by default as identity (increment -2));
insert into counted default values;
create table counted2 (y int, like counted including all);
create table counted3 (like counted including identity excluding identity);
insert into counted2 default values;
insert into counted2 default values returning *;
select sequencename, data_type, start_value, min_value, max_value, increment_by, cycle from pg_sequences where sequencename like 'counted%' order by 1;
insert into counted3 default values;
----
CREATE TABLE
INSERT 0 1
CREATE TABLE
CREATE TABLE
INSERT 0 1
y:int4|x:int4|id:int4|d:int2
NULL|NULL|105|-3
INSERT 0 1
sequencename:name|data_type:regtype|start_value:int8|min_value:int8|max_value:int8|increment_by:int8|cycle:bool
counted2_d_seq|bigint|-1|-32768|-1|-2|f
counted2_id_seq|bigint|100|1|1000|5|t
counted_d_seq|smallint|-1|-32768|-1|-2|f
counted_id_seq|integer|100|1|1000|5|t
ERROR 23502: null value in column "id" of relation "counted3" violates not-null constraint
DETAIL: Failing row contains (null, null, null).
