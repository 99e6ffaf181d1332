# A default is evaluated for each row.
create table d (id int primary key, t timestamptz default now(), n numeric(8, 2) default 1.005 * 2, s text default upper('abc') || 'x', c int default 3 + 4, b bool default true, x varchar(4) default 'ab');
insert into d (id) values (1), (2), (3);
insert into d default values;
insert into d (id, s) values (4, default), (5, 'own');
insert into d (id, c) select 6, 60;
select id, t <= now(), n, s, c, b, x from d order by id;
update d set c = default, s = 'set' where id <= 2;
select max(c), min(s) from d where id <= 2;
insert into d (id, c) values (1, 9) on conflict (id) do update set c = excluded.c + d.c, s = default returning id, c, s;
----
CREATE TABLE
INSERT 0 3
ERROR 23502: null value in column "id" of relation "d" violates not-null constraint
DETAIL: Failing row contains (null, 2024-05-05 07:08:09.500678+00, 2.01, ABCx, 7, t, ab).
INSERT 0 2
INSERT 0 1
id:int4|?column?:bool|n:numeric|s:text|c:int4|b:bool|x:varchar
1|t|2.01|ABCx|7|t|ab
2|t|2.01|ABCx|7|t|ab
3|t|2.01|ABCx|7|t|ab
4|t|2.01|ABCx|7|t|ab
5|t|2.01|own|7|t|ab
6|t|2.01|ABCx|60|t|ab
UPDATE 2
max:int4|min:text
7|set
id:int4|c:int4|s:text
1|16|ABCx
INSERT 0 1

# What a default must not be.
create table e (a int default (select 1));
create table e (a int, b int default a);
create table e (a int default sum(1));
create table e (a int default generate_series(1, 2));
create table e (a int default 'x');
create table e (a int default true);
create table e (a int default $1);
----
ERROR 0A000: cannot use subquery in DEFAULT expression [at 31]
ERROR 0A000: cannot use column reference in DEFAULT expression [at 38]
ERROR 42803: aggregate functions are not allowed in DEFAULT expressions [at 31]
ERROR 0A000: set-returning functions are not allowed in DEFAULT expressions [at 31]
ERROR 22P02: invalid input syntax for type integer: "x" [at 31]
ERROR 42804: column "a" is of type integer but default expression is of type boolean
HINT: You will need to rewrite or cast the expression.
ERROR 42P02: there is no parameter $1 [at 31]

# Checks have names as in PostgreSQL, and are evaluated in the order of these.
create table c (a int check (a > 1), check (a < 10), b int check (a < b), constraint foo check (b > 0), check (b < 100 and a < 100));
insert into c values (1, 5);
insert into c values (12, 5);
insert into c values (5, 2);
insert into c values (null, -1);
insert into c values (5, 200);
insert into c values (5, 6), (null, 3), (null, null);
update c set b = b + 100 where a = 5;
update c set b = 1 where a = 5;
select * from c order by a, b;
insert into c (a, b) values (3, 4) on conflict do nothing;
----
CREATE TABLE
ERROR 23514: new row for relation "c" violates check constraint "c_a_check"
DETAIL: Failing row contains (1, 5).
ERROR 23514: new row for relation "c" violates check constraint "c_a_check1"
DETAIL: Failing row contains (12, 5).
ERROR 23514: new row for relation "c" violates check constraint "c_check"
DETAIL: Failing row contains (5, 2).
ERROR 23514: new row for relation "c" violates check constraint "foo"
DETAIL: Failing row contains (null, -1).
ERROR 23514: new row for relation "c" violates check constraint "c_check1"
DETAIL: Failing row contains (5, 200).
INSERT 0 3
ERROR 23514: new row for relation "c" violates check constraint "c_check1"
DETAIL: Failing row contains (5, 106).
ERROR 23514: new row for relation "c" violates check constraint "c_check"
DETAIL: Failing row contains (5, 1).
a:int4|b:int4
5|6
NULL|3
NULL|NULL
INSERT 0 1

# What a check must not be.
create table e (a int check (a > (select 1)));
create table e (a int check (sum(a) > 1));
create table e (a int check (b > 1));
create table e (a int check (a));
create table e (a int, constraint c check (a > 0), constraint c check (a > 1));
create table e (a int constraint c check (a > 0), constraint c unique (a));
create table e (a int check (a > 0) not enforced);
----
ERROR 0A000: cannot use subquery in check constraint [at 34]
ERROR 42803: aggregate functions are not allowed in check constraints [at 30]
ERROR 42703: column "b" does not exist [at 30]
ERROR 42804: argument of CHECK must be type boolean, not type integer [at 30]
ERROR 42710: check constraint "c" already exists
ERROR 42P07: relation "c" already exists
ERROR 42601: syntax error at or near "enforced" [at 41]

# NOT NULL comes before the checks.
create table nn (a int not null check (a > 0), b text not null default 'x' check (length(b) < 4));
insert into nn (b) values ('longer');
insert into nn values (0, 'longer');
insert into nn values (1, 'longer');
insert into nn values (1, null);
insert into nn values (1);
update nn set a = null;
update nn set b = default, a = a - 1;
select * from nn;
----
CREATE TABLE
ERROR 23502: null value in column "a" of relation "nn" violates not-null constraint
DETAIL: Failing row contains (null, longer).
ERROR 23514: new row for relation "nn" violates check constraint "nn_a_check"
DETAIL: Failing row contains (0, longer).
ERROR 23514: new row for relation "nn" violates check constraint "nn_b_check"
DETAIL: Failing row contains (1, longer).
ERROR 23502: null value in column "b" of relation "nn" violates not-null constraint
DETAIL: Failing row contains (1, null).
INSERT 0 1
ERROR 23502: null value in column "a" of relation "nn" violates not-null constraint
DETAIL: Failing row contains (null, x).
ERROR 23514: new row for relation "nn" violates check constraint "nn_a_check"
DETAIL: Failing row contains (0, x).
a:int4|b:text
1|x

# Generated columns.
create table g (a int, b int generated always as (a * 2) stored, s text generated always as (coalesce(a::text, 'none')) stored not null);
insert into g values (1, 5);
insert into g values (1, default) returning *;
insert into g (a, b) select 1, 2;
insert into g (a) values (4), (null) returning *;
insert into g default values returning *;
update g set b = 5;
update g set (a, b) = (1, 2);
update g set b = default, a = 7 where a = 1 returning *;
update g set a = a + 1;
select * from g order by a;
create index on g (b);
select a from g where b = 16;
insert into g (a) values (100) on conflict do nothing returning b;
----
CREATE TABLE
ERROR 428C9: cannot insert a non-DEFAULT value into column "b"
DETAIL: Column "b" is a generated column.
a:int4|b:int4|s:text
1|2|1
INSERT 0 1
ERROR 428C9: cannot insert a non-DEFAULT value into column "b"
DETAIL: Column "b" is a generated column.
a:int4|b:int4|s:text
4|8|4
NULL|NULL|none
INSERT 0 2
a:int4|b:int4|s:text
NULL|NULL|none
INSERT 0 1
ERROR 428C9: column "b" can only be updated to DEFAULT
DETAIL: Column "b" is a generated column.
ERROR 428C9: column "b" can only be updated to DEFAULT
DETAIL: Column "b" is a generated column.
a:int4|b:int4|s:text
7|14|7
UPDATE 1
UPDATE 4
a:int4|b:int4|s:text
5|10|5
8|16|8
NULL|NULL|none
NULL|NULL|none
CREATE INDEX
a:int4
8
b:int4
200
INSERT 0 1

# A unique generated column.
create table gu (a text primary key, l text generated always as (lower(a)) stored unique);
insert into gu values ('Ab'), ('cD');
insert into gu values ('aB');
update gu set a = 'CD' where a = 'Ab';
insert into gu values ('AB') on conflict (l) do update set a = excluded.l || 'x' returning *;
select * from gu order by a;
----
CREATE TABLE
INSERT 0 2
ERROR 23505: duplicate key value violates unique constraint "gu_l_key"
DETAIL: Key (l)=(ab) already exists.
ERROR 23505: duplicate key value violates unique constraint "gu_l_key"
DETAIL: Key (l)=(cd) already exists.
a:text|l:text
abx|abx
INSERT 0 1
a:text|l:text
abx|abx
cD|cd

# What a generated column must not be.
create table e (a int, b int generated always as (c * 2) stored, c int generated always as (a) stored);
create table e (a int, b timestamptz generated always as (now()) stored);
create table e (a int, b int default 5 generated always as (a) stored);
create table e (a int, b int generated always as ((select 1)) stored);
create table e (a int, b int generated always as (sum(a)) stored);
create table e (a int, b int generated always as (b + 1) stored);
create table e (a int, b int generated always as ('x'::text) stored);
create table e (a int, b int generated always as (zz) stored);
----
ERROR 42P17: cannot use generated column "c" in column generation expression [at 51]
DETAIL: A generated column cannot reference another generated column.
ERROR 42P17: generation expression is not immutable
ERROR 42601: both default and generation expression specified for column "b" of table "e" [at 40]
ERROR 0A000: cannot use subquery in column generation expression [at 51]
ERROR 42803: aggregate functions are not allowed in column generation expressions [at 51]
ERROR 42P17: cannot use generated column "b" in column generation expression [at 51]
DETAIL: A generated column cannot reference another generated column.
ERROR 42804: column "b" is of type integer but default expression is of type text
HINT: You will need to rewrite or cast the expression.
ERROR 42703: column "zz" does not exist [at 51]

# NO INHERIT means nothing without inheritance; NOT VALID is not supported.
create table ni (a int check (a > 0) no inherit, constraint b check (a < 9) no inherit);
alter table only ni add constraint c check (a <> 5) no inherit, add check (a <> 6);
alter table ni add constraint d check (a <> 7) not valid;
alter table ni validate constraint c;
alter table ni validate constraint d;
insert into ni values (5);
insert into ni values (0);
----
CREATE TABLE
ALTER TABLE
ERROR 0A000: NOT VALID is not supported yet [at 13]
ALTER TABLE
ERROR 42704: constraint "d" of relation "ni" does not exist
ERROR 23514: new row for relation "ni" violates check constraint "c"
DETAIL: Failing row contains (5).
ERROR 23514: new row for relation "ni" violates check constraint "ni_a_check"
DETAIL: Failing row contains (0).
