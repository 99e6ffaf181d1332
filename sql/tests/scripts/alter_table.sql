# ADD COLUMN on an empty table and on a loaded one.
create table t (id int primary key, a text);
alter table t add column n int, add m int not null default 7;
insert into t values (1, 'one', 1), (2, 'two', null), (3, null, 3);
alter table t add column d numeric(6, 2) default 1.5;
alter table t add column if not exists d int, add if not exists e text check (e <> 'x');
alter table t add g int generated always as (id * 10 + coalesce(n, 0)) stored;
select * from t order by id;
insert into t (id, e) values (4, 'y') returning *;
insert into t (id, e) values (5, 'x');
alter table t add column d int;
alter table t add c int not null;
alter table t add c int unique;
alter table t add c2 int check (c2 > 0) default -1;
alter table t add c2 int unique default 4;
alter table t add k int primary key;
alter table t add id2 int references t;
update t set c = id, id2 = 5 - id;
update t set id2 = 9 where id = 1;
select id, c, id2, g from t order by id;
----
CREATE TABLE
ALTER TABLE
INSERT 0 3
ALTER TABLE
NOTICE 42701: column "d" of relation "t" already exists, skipping
ALTER TABLE
ALTER TABLE
id:int4|a:text|n:int4|m:int4|d:numeric|e:text|g:int4
1|one|1|7|1.50|NULL|11
2|two|NULL|7|1.50|NULL|20
3|NULL|3|7|1.50|NULL|33
id:int4|a:text|n:int4|m:int4|d:numeric|e:text|g:int4
4|NULL|NULL|7|1.50|y|40
INSERT 0 1
ERROR 23514: new row for relation "t" violates check constraint "t_e_check"
DETAIL: Failing row contains (5, null, null, 7, 1.50, x, 50).
ERROR 42701: column "d" of relation "t" already exists
ERROR 23502: column "c" of relation "t" contains null values
ALTER TABLE
ERROR 23514: check constraint "t_c2_check" of relation "t" is violated by some row
ERROR 23505: could not create unique index "t_c2_key"
DETAIL: Key (c2)=(4) is duplicated.
ERROR 42P16: multiple primary keys for table "t" are not allowed
ALTER TABLE
UPDATE 4
ERROR 23503: insert or update on table "t" violates foreign key constraint "t_id2_fkey"
DETAIL: Key (id2)=(9) is not present in table "t".
id:int4|c:int4|id2:int4|g:int4
1|1|4|11
2|2|3|20
3|3|2|33
4|4|1|40

# DROP COLUMN.
alter table t drop column nope;
alter table t drop column if exists nope, drop n;
alter table t drop column id;
alter table t drop column n cascade;
select * from t order by id;
alter table t drop column id2, drop column d;
alter table t drop column id cascade;
select * from t order by m, c;
insert into t (m, a) values (8, 'eight') returning *;
alter table t add column a2 int default 2;
select a, a2 from t order by a;
create index t_a2 on t (a2, c);
create index t_pred on t (c) where a2 > 1;
alter table t add constraint both_pos check (c > 0 or a2 > 0), add unique (a2, a);
alter table t drop column a2;
insert into t (m, a, c) values (9, 'nine', -1) returning *;
----
ERROR 42703: column "nope" of relation "t" does not exist
ERROR 2BP01: cannot drop column n of table t because other objects depend on it
DETAIL: column g of table t depends on column n of table t
HINT: Use DROP ... CASCADE to drop the dependent objects too.
ERROR 2BP01: cannot drop column id of table t because other objects depend on it
DETAIL: column g of table t depends on column id of table t
constraint t_id2_fkey on table t depends on column id of table t
HINT: Use DROP ... CASCADE to drop the dependent objects too.
NOTICE 00000: drop cascades to column g of table t
ALTER TABLE
id:int4|a:text|m:int4|d:numeric|e:text|c:int4|id2:int4
1|one|7|1.50|NULL|1|4
2|two|7|1.50|NULL|2|3
3|NULL|7|1.50|NULL|3|2
4|NULL|7|1.50|y|4|1
ALTER TABLE
ALTER TABLE
a:text|m:int4|e:text|c:int4
one|7|NULL|1
two|7|NULL|2
NULL|7|NULL|3
NULL|7|y|4
a:text|m:int4|e:text|c:int4
eight|8|NULL|NULL
INSERT 0 1
ALTER TABLE
a:text|a2:int4
eight|2
one|2
two|2
NULL|2
NULL|2
CREATE INDEX
CREATE INDEX
ALTER TABLE
ALTER TABLE
a:text|m:int4|e:text|c:int4
nine|9|NULL|-1
INSERT 0 1

# ALTER COLUMN TYPE.
create table ty (id int primary key, a int, b text, c varchar(5) default '12' check (length(c) > 1), unique (a));
insert into ty values (1, 10, '100', 'abc'), (2, 20, '200', 'de'), (3, null, null, null);
create index on ty (b);
alter table ty alter a type bigint;
alter table ty alter column a set data type text;
select * from ty where a = '10';
alter table ty alter b type int;
alter table ty alter b type int using b::int + 1, alter c type text, alter id type bigint;
select * from ty order by id;
select id from ty where b = 201;
insert into ty values (4, '20', 5);
insert into ty (id, c) values (4, 'x');
insert into ty (id, a) values (4, '5000000000') returning *;
alter table ty alter c type int;
alter table ty alter c type int using 1;
alter table ty alter c type int using id;
alter table ty alter c drop default, alter c type int using id;
alter table ty alter nope type int;
alter table ty alter b type int using (select 1);
alter table ty alter b type int using sum(b);
alter table ty alter b type int using 'x';
alter table ty alter b type int using 'x'::date;
alter table ty add g int generated always as (b + 1) stored;
alter table ty alter b type bigint;
alter table ty alter g type bigint;
select * from ty order by id;
----
CREATE TABLE
INSERT 0 3
CREATE INDEX
ALTER TABLE
ALTER TABLE
id:int4|a:text|b:text|c:varchar
1|10|100|abc
ERROR 42804: column "b" cannot be cast automatically to type integer
HINT: You might need to specify "USING b::integer".
ALTER TABLE
id:int8|a:text|b:int4|c:text
1|10|101|abc
2|20|201|de
3|NULL|NULL|NULL
id:int8
2
ERROR 23505: duplicate key value violates unique constraint "ty_a_key"
DETAIL: Key (a)=(20) already exists.
ERROR 23514: new row for relation "ty" violates check constraint "ty_c_check"
DETAIL: Failing row contains (4, null, null, x).
id:int8|a:text|b:int4|c:text
4|5000000000|NULL|12
INSERT 0 1
ERROR 42804: column "c" cannot be cast automatically to type integer
HINT: You might need to specify "USING c::integer".
ERROR 42804: default for column "c" cannot be cast automatically to type integer
ERROR 42804: default for column "c" cannot be cast automatically to type integer
ERROR 42883: function length(integer) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
ERROR 42703: column "nope" of relation "ty" does not exist
ERROR 0A000: cannot use subquery in transform expression [at 39]
ERROR 42803: aggregate functions are not allowed in transform expressions [at 39]
ERROR 22P02: invalid input syntax for type integer: "x" [at 39]
ERROR 22007: invalid input syntax for type date: "x" [at 39]
ALTER TABLE
ERROR 0A000: cannot alter type of a column used by a generated column
DETAIL: Column "b" is used by generated column "g".
ALTER TABLE
id:int8|a:text|b:int4|c:text|g:int8
1|10|101|abc|102
2|20|201|de|202
3|NULL|NULL|NULL|NULL
4|5000000000|NULL|12|NULL

# Defaults and NOT NULL.
create table df (a int, b text, primary key (a));
insert into df values (1, 'x'), (2, null);
alter table df alter b set default 'dd', alter b set not null;
update df set b = 'y' where b is null;
alter table df alter b set default 'dd', alter b set not null;
insert into df values (3) returning *;
insert into df values (4, null);
alter table df alter b drop default, alter b drop not null;
insert into df values (4) returning *;
alter table df alter b set default 1;
alter table df alter b set default nope;
alter table df alter b set default (select 1);
alter table df alter a set default true;
alter table df alter a drop not null;
alter table df alter nope drop default;
alter table df add g int generated always as (a) stored;
alter table df alter g set default 4;
alter table df alter g drop default;
----
CREATE TABLE
INSERT 0 2
ERROR 23502: column "b" of relation "df" contains null values
UPDATE 1
ALTER TABLE
a:int4|b:text
3|dd
INSERT 0 1
ERROR 23502: null value in column "b" of relation "df" violates not-null constraint
DETAIL: Failing row contains (4, null).
ALTER TABLE
a:int4|b:text
4|NULL
INSERT 0 1
ALTER TABLE
ERROR 0A000: cannot use column reference in DEFAULT expression
ERROR 0A000: cannot use subquery in DEFAULT expression
ERROR 42804: column "a" is of type integer but default expression is of type boolean
HINT: You will need to rewrite or cast the expression.
ERROR 42P16: column "a" is in a primary key
ERROR 42703: column "nope" of relation "df" does not exist
ALTER TABLE
ERROR 42601: column "g" of relation "df" is a generated column
ERROR 42601: column "g" of relation "df" is a generated column
HINT: Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.

# RENAME.
create table r (a int constraint r_pos check (a > 0), b int, check (r.a < b), unique (b), g int generated always as (a + b) stored);
create index r_expr on r ((a + b)) where b > 1;
insert into r values (1, 2);
alter table r rename a to "Old a";
alter table r rename column b to c;
alter table r rename nope to d;
alter table r rename c to g;
alter table r rename to "R 2";
insert into "R 2" values (3, 2);
insert into "R 2" values (-1, 2);
insert into "R 2" values (3, 5) returning *;
select "Old a" from "R 2" where "Old a" + c = 8 and c > 1;
select * from r;
alter table "R 2" rename to r;
alter table nope rename to r3;
alter table if exists nope rename to r3;
alter table r rename to ty;
alter table r rename constraint r_pos to r_positive;
alter table r rename constraint r_b_key to r_key;
alter table r rename constraint nope to x;
alter table r rename constraint r_key to r_positive;
insert into r values (-1, 2);
insert into r values (3, 5);
alter index r_key rename to r_key2;
alter index r_expr rename to r_key2;
alter index nope rename to x;
select 'r_key2'::regclass, 'r_expr'::regclass;
----
CREATE TABLE
CREATE INDEX
INSERT 0 1
ALTER TABLE
ALTER TABLE
ERROR 42703: column "nope" does not exist
ERROR 42701: column "g" of relation "r" already exists
ALTER TABLE
ERROR 23514: new row for relation "R 2" violates check constraint "r_check"
DETAIL: Failing row contains (3, 2, 5).
ERROR 23514: new row for relation "R 2" violates check constraint "r_pos"
DETAIL: Failing row contains (-1, 2, 1).
Old a:int4|c:int4|g:int4
3|5|8
INSERT 0 1
Old a:int4
3
ERROR 42P01: relation "r" does not exist [at 15]
ALTER TABLE
ERROR 42P01: relation "nope" does not exist
NOTICE 00000: relation "nope" does not exist, skipping
ALTER TABLE
ERROR 42P07: relation "ty" already exists
ALTER TABLE
ALTER TABLE
ERROR 42704: constraint "nope" for table "r" does not exist
ERROR 42710: constraint "r_positive" for relation "r" already exists
ERROR 23514: new row for relation "r" violates check constraint "r_positive"
DETAIL: Failing row contains (-1, 2, 1).
ERROR 23505: duplicate key value violates unique constraint "r_key"
DETAIL: Key (c)=(5) already exists.
ALTER INDEX
ERROR 42P07: relation "r_key2" already exists
ERROR 42P01: relation "nope" does not exist
regclass:regclass|regclass:regclass
r_key2|r_expr

# ADD and DROP CONSTRAINT.
create table k (a int, b int, c int);
insert into k values (1, 1, 1), (2, 2, null), (3, 2, 5);
alter table k add constraint k_big check (a > 1);
alter table k add check (a > 0), add constraint k_c check (c < 10), add unique (a, b);
alter table k add unique (b);
alter table k add primary key (c);
alter table k add primary key (a);
alter table k add primary key (b);
alter table k add constraint k_c check (c < 11);
insert into k values (0, 1, 1);
insert into k values (4, 4, 11);
insert into k values (1, 4, 1);
alter table k drop constraint k_c, drop constraint k_pkey, drop constraint if exists nope;
alter table k drop constraint nope;
insert into k values (1, 4, 100);
create unique index k_idx on k (a, c);
create unique index k_part on k (a) where c > 1000;
create index k_plain on k (a);
create unique index k_desc on k (c desc, b);
alter table k add constraint k_uniq unique using index k_idx;
alter table k add unique using index k_part;
alter table k add unique using index k_plain;
alter table k add unique using index k_desc;
alter table k add unique using index nope;
insert into k values (1, 9, 100);
delete from k where c is null;
create unique index k_new on k (c);
alter table k add constraint k_pk primary key using index k_new;
insert into k values (7, 7, 100);
insert into k values (7, 7, null);
select * from k where c = 100;
----
CREATE TABLE
INSERT 0 3
ERROR 23514: check constraint "k_big" of relation "k" is violated by some row
ALTER TABLE
ERROR 23505: could not create unique index "k_b_key"
DETAIL: Key (b)=(2) is duplicated.
ERROR 23502: column "c" of relation "k" contains null values
ALTER TABLE
ERROR 42P16: multiple primary keys for table "k" are not allowed
ERROR 42710: constraint "k_c" for relation "k" already exists
ERROR 23514: new row for relation "k" violates check constraint "k_a_check"
DETAIL: Failing row contains (0, 1, 1).
ERROR 23514: new row for relation "k" violates check constraint "k_c"
DETAIL: Failing row contains (4, 4, 11).
ERROR 23505: duplicate key value violates unique constraint "k_pkey"
DETAIL: Key (a)=(1) already exists.
NOTICE 00000: constraint "nope" of relation "k" does not exist, skipping
ALTER TABLE
ERROR 42704: constraint "nope" of relation "k" does not exist
INSERT 0 1
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE INDEX
NOTICE 00000: ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index "k_idx" to "k_uniq"
ALTER TABLE
ERROR 42809: "k_part" is a partial index [at 19]
DETAIL: Cannot create a primary key or unique constraint using such an index.
ERROR 42809: "k_plain" is not a unique index [at 19]
DETAIL: Cannot create a primary key or unique constraint using such an index.
ERROR 42809: index "k_desc" column number 1 does not have default sorting behavior [at 19]
DETAIL: Cannot create a primary key or unique constraint using such an index.
ERROR 42704: index "nope" does not exist [at 19]
ERROR 23505: duplicate key value violates unique constraint "k_uniq"
DETAIL: Key (a, c)=(1, 100) already exists.
DELETE 1
CREATE INDEX
NOTICE 00000: ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index "k_new" to "k_pk"
ALTER TABLE
ERROR 23505: duplicate key value violates unique constraint "k_pk"
DETAIL: Key (c)=(100) already exists.
ERROR 23502: null value in column "c" of relation "k" violates not-null constraint
DETAIL: Failing row contains (7, 7, null).
a:int4|b:int4|c:int4
1|4|100

# In a transaction, with rows of its own.
begin;
create table own (a int, b text);
insert into own values (1, 'x'), (2, 'y');
alter table own add c int default 5, alter a type text, add primary key (a);
insert into own values ('3', 'z');
update own set c = 6 where a = '1';
alter table own rename b to bb;
alter table own drop column c, add check (bb <> 'w');
select * from own order by a;
savepoint s;
alter table own rename to owned;
rollback to s;
insert into own values ('4', 'w');
rollback to s;
commit;
select * from own order by a;
begin;
alter table own drop column bb;
select * from own order by a;
rollback;
select * from own order by a;
----
BEGIN
CREATE TABLE
INSERT 0 2
ALTER TABLE
INSERT 0 1
UPDATE 1
ALTER TABLE
ALTER TABLE
a:text|bb:text
1|x
2|y
3|z
SAVEPOINT
ALTER TABLE
ROLLBACK
ERROR 23514: new row for relation "own" violates check constraint "own_bb_check"
DETAIL: Failing row contains (4, w).
ROLLBACK
COMMIT
a:text|bb:text
1|x
2|y
3|z
BEGIN
ALTER TABLE
a:text
1
2
3
ROLLBACK
a:text|bb:text
1|x
2|y
3|z

# Defaults are shown as PostgreSQL writes them. NULL is none, unless the column has a length.
create table defaults (a int8 default '0', b numeric(6,2) default '1', c bool default '0', d char(3) default null,
  e varchar(3) default null, f date default null, g text default upper('x' || 'y'), h float8 default 1 + 2,
  i timestamptz default current_timestamp, j int default -1, k jsonb default '{"a":1}');
alter table defaults alter k set default null, add l int default 7;
----
CREATE TABLE
ALTER TABLE

select column_name, column_default from information_schema.columns where table_name = 'defaults' order by ordinal_position;
----
column_name:name|column_default:varchar
a|'0'::bigint
b|'1'::numeric
c|false
d|NULL::bpchar
e|NULL::character varying
f|NULL
g|upper(('x'::text || 'y'::text))
h|(1 + 2)
i|CURRENT_TIMESTAMP
j|'-1'::integer
k|NULL
l|7

# The value of a new column is computed at once, also without rows.
alter table defaults add m varchar(3) default 'long';
----
ERROR 22001: value too long for type character varying(3)

alter table defaults add m int default 1 / 0;
----
ERROR 22012: division by zero

create table pg_catalog.x (a int);
----
ERROR 42501: permission denied to create "pg_catalog.x"
DETAIL: System catalog modifications are currently disallowed.

create table twice (a serial default null);
----
ERROR 42601: multiple default values specified for column "a" of table "twice"

# New types meet the constraints of the table in the order in which these came, then those of other tables.
create table fp (id int primary key);
create table fc (id int primary key, check (id > 0), foreign key (id) references fp);
create table fd (id int primary key references fp);
alter table fd add check (id > 0);
alter table fc alter column id type varchar(2);
alter table fd alter column id type varchar(2);
alter table fd alter column id type varchar(2), alter column nope type int;
alter table fp alter column id type varchar(2);
drop table fc, fd, fp;
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
ALTER TABLE
ERROR 42883: operator does not exist: character varying > integer [at 12]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
ERROR 42804: foreign key constraint "fd_id_fkey" cannot be implemented
DETAIL: Key columns "id" and "id" are of incompatible types: character varying and integer.
ERROR 42703: column "nope" of relation "fd" does not exist
ERROR 42804: foreign key constraint "fc_id_fkey" cannot be implemented
DETAIL: Key columns "id" and "id" are of incompatible types: integer and character varying.
DROP TABLE

# The new values of all columns are bound first. No column gets two types.
create table tt (a int, b int, c int generated always as (a) stored);
insert into tt (a, b) values (1, 10);
alter table tt alter b type bigint, alter b type text;
alter table tt alter b type text, alter b type bigint using b::date;
alter table tt alter a type bigint, alter b type nosuch;
alter table tt alter z type nosuch using nosuch;
alter table tt alter z type nosuch;
alter table tt alter b type int, alter b type int using b + 1;
select * from tt;
create view tv as select b from tt;
alter table tt alter b type date;
alter table tt alter b type bigint;
drop view tv;
alter table tt alter a type text, alter c type bigint, alter c type text;
create table idn (i int generated always as identity);
alter table idn alter i type nosuch;
drop table tt, idn;
----
CREATE TABLE
INSERT 0 1
ERROR 0A000: cannot alter type of column "b" twice
ERROR 42846: cannot cast type integer to date [at 62]
ERROR 42704: type "nosuch" does not exist
ERROR 42703: column "nosuch" does not exist [at 42]
ERROR 42703: column "z" of relation "tt" does not exist
ALTER TABLE
a:int4|b:int4|c:int4
1|11|1
CREATE VIEW
ERROR 42804: column "b" cannot be cast automatically to type date
HINT: You might need to specify "USING b::date".
ERROR 0A000: cannot alter type of a column used by a view or rule
DETAIL: rule _RETURN on view tv depends on column "b"
DROP VIEW
ERROR 0A000: cannot alter type of a column used by a generated column
DETAIL: Column "a" is used by generated column "c".
CREATE TABLE
ERROR 42704: type "nosuch" does not exist [at 30]
DROP TABLE

# A volatile default of a new column is evaluated for each row, and a sequence numbers them.
create table rolled (id int primary key);
insert into rolled values (1), (2), (3);
create sequence draws start 10;
alter table rolled add r float8 default random();
alter table rolled add u uuid not null default gen_random_uuid();
alter table rolled add t timestamptz default clock_timestamp();
alter table rolled add n int default nextval('draws');
alter table rolled add m int default nextval('draws') * 2 check (m > 0);
alter table rolled add s serial, add i int generated always as identity (start 5);
select count(distinct r), count(distinct u), bool_and(t <= clock_timestamp()) from rolled;
select id, n, m, s, i from rolled order by id;
insert into rolled (id) values (4) returning n, m, s, i;
alter table rolled add w int default 1 / (nextval('draws') - 18);
select nextval('draws');
begin;
insert into rolled (id) values (5);
alter table rolled add w int default nextval('draws');
select id, w from rolled order by id;
rollback;
alter table rolled alter s type bigint using nextval('draws') * 0 + id;
select id, s from rolled order by id;
drop table rolled;
drop sequence draws;
----
CREATE TABLE
INSERT 0 3
CREATE SEQUENCE
ALTER TABLE
ALTER TABLE
ALTER TABLE
ALTER TABLE
ALTER TABLE
ALTER TABLE
count:int8|count:int8|bool_and:bool
3|3|t
id:int4|n:int4|m:int4|s:int4|i:int4
1|10|26|1|5
2|11|28|2|6
3|12|30|3|7
n:int4|m:int4|s:int4|i:int4
16|34|4|8
INSERT 0 1
ERROR 22012: division by zero
nextval:int8
19
BEGIN
INSERT 0 1
ALTER TABLE
id:int4|w:int4
1|22
2|23
3|24
4|25
5|26
ROLLBACK
ALTER TABLE
id:int4|s:int8
1|1
2|2
3|3
4|4
DROP TABLE
DROP SEQUENCE

# A REPEATABLE READ transaction sees a table that it has rewritten after it has taken its snapshot.
create table seen (id int primary key, v int unique);
create table beside (id int primary key);
insert into seen values (1, 10), (2, 20);
begin isolation level repeatable read;
select count(*) from seen;
alter table seen add column d int default 5;
select * from seen order by id;
update seen set d = 6 where id = 1;
insert into seen values (3, 30);
select * from seen where v >= 20 order by v;
delete from seen where v = 20;
commit;
select * from seen order by id;
----
CREATE TABLE
CREATE TABLE
INSERT 0 2
BEGIN
count:int8
2
ALTER TABLE
id:int4|v:int4|d:int4
1|10|5
2|20|5
UPDATE 1
INSERT 0 1
id:int4|v:int4|d:int4
2|20|5
3|30|5
DELETE 1
COMMIT
id:int4|v:int4|d:int4
1|10|6
3|30|5

# The same if it is the first statement, again after a savepoint, after writes, and after a rollback.
begin isolation level repeatable read;
alter table seen alter v type bigint;
select * from seen order by id;
savepoint s;
alter table seen add e uuid not null default gen_random_uuid();
update seen set d = 7;
select id, v, d, e is null from seen order by v;
rollback to s;
select * from seen order by id;
update seen set d = d + 1 where id = 1;
alter table seen add n int default 9;
update seen set n = n + d where v = 30;
select * from seen order by id;
rollback;
select * from seen order by id;
----
BEGIN
ALTER TABLE
id:int4|v:int8|d:int4
1|10|6
3|30|5
SAVEPOINT
ALTER TABLE
UPDATE 2
id:int4|v:int8|d:int4|?column?:bool
1|10|7|f
3|30|7|f
ROLLBACK
id:int4|v:int8|d:int4
1|10|6
3|30|5
UPDATE 1
ALTER TABLE
UPDATE 1
id:int4|v:int8|d:int4|n:int4
1|10|7|9
3|30|5|14
ROLLBACK
id:int4|v:int4|d:int4
1|10|6
3|30|5

# At READ COMMITTED the next statement has a newer snapshot.
begin;
select count(*) from seen;
alter table seen alter v type bigint, add e int not null default 1;
update seen set e = id + 1 where v > 10;
select * from seen order by id;
rollback;
----
BEGIN
count:int8
2
ALTER TABLE
UPDATE 1
id:int4|v:int8|d:int4|e:int4
1|10|6|1
3|30|5|4
ROLLBACK

# Rows from after the snapshot are kept, and seen in the table that was rewritten. Other tables stay as they were.
insert into beside values (1);
begin isolation level repeatable read;
select count(*) from seen;
\session b
insert into seen values (4, 40);
update seen set d = 8 where id = 3;
insert into beside values (2);
\session main
alter table seen alter v type numeric;
select * from seen order by id;
select s.id, b.id from seen s left join beside b on b.id = s.id - 2 order by 1;
update seen set d = 0 where id > 3;
insert into seen values (5, 40) on conflict (v) do nothing;
delete from seen where id = 1;
select * from seen order by id;
commit;
select * from seen order by id;
----
INSERT 0 1
BEGIN
count:int8
2
INSERT 0 1
UPDATE 1
INSERT 0 1
ALTER TABLE
id:int4|v:numeric|d:int4
1|10|6
3|30|8
4|40|5
id:int4|id:int4
1|NULL
3|1
4|NULL
UPDATE 1
INSERT 0 0
DELETE 1
id:int4|v:numeric|d:int4
3|30|8
4|40|0
COMMIT
id:int4|v:numeric|d:int4
3|30|8
4|40|0

# After writes, too. So it is with a new index, where PostgreSQL keeps the old rows in sight.
begin isolation level repeatable read;
update seen set d = 1 where id = 3;
\session b
insert into seen values (6, 60, 2);
\session main
alter table seen alter v type int;
select * from seen order by id;
rollback;
begin isolation level repeatable read;
select count(*) from seen;
\session b
insert into seen values (7, 70, 3);
\session main
create index seen_d on seen (d);
select id, d from seen where d in (2, 3, 8) order by d;
explain select id from seen where d = 3;
update seen set d = d + 10 where d >= 2;
select id, d from seen where d > 10 order by d;
commit;
select * from seen order by id;
drop table seen, beside;
----
BEGIN
UPDATE 1
INSERT 0 1
ALTER TABLE
id:int4|v:int4|d:int4
3|30|1
4|40|0
6|60|2
ROLLBACK
BEGIN
count:int8
3
INSERT 0 1
CREATE INDEX
id:int4|d:int4
6|2
7|3
3|8
Index Only Scan using seen_d on seen
  Index Cond: (d = 3)
UPDATE 3
id:int4|d:int4
6|12
7|13
3|18
COMMIT
id:int4|v:numeric|d:int4
3|30|18
4|40|0
6|60|12
7|70|13
DROP TABLE

# DROP EXPRESSION: the values stay.
create table gx (id int, g int generated always as (id * 2) stored, p int);
insert into gx values (1), (2);
alter table gx alter column g drop default;
alter table gx alter g set default 3;
alter table gx alter column p drop expression;
alter table gx alter p drop expression if exists;
alter table gx alter zz drop expression;
alter table gx alter g drop expression foo;
alter table gx alter column g drop expression, alter p set default 7;
insert into gx (id, g) values (3, 5);
update gx set id = 10 where id = 1;
select * from gx order by id;
alter table gx alter g drop expression;
select attname, attgenerated from pg_attribute where attrelid = 'gx'::regclass and attnum > 0 order by attnum;
drop table gx;
----
CREATE TABLE
INSERT 0 2
ERROR 42601: column "g" of relation "gx" is a generated column
HINT: Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.
ERROR 42601: column "g" of relation "gx" is a generated column
ERROR 55000: column "p" of relation "gx" is not a stored generated column
NOTICE 00000: column "p" of relation "gx" is not a stored generated column, skipping
ALTER TABLE
ERROR 42703: column "zz" of relation "gx" does not exist
ERROR 42601: syntax error at or near "foo" [at 40]
ALTER TABLE
INSERT 0 1
UPDATE 1
id:int4|g:int4|p:int4
2|4|NULL
3|5|7
10|2|NULL
ERROR 55000: column "g" of relation "gx" is not a stored generated column
attname:name|attgenerated:char
id|
g|
p|
DROP TABLE
