# ONLY and * say nothing: there is no inheritance.
create table t (id int primary key, a int, s text);
create table u (id int primary key, b int);
insert into t values (1, 1, 'x'), (2, null, 'y'), (3, 3, 'X');
insert into u values (1, 10), (3, 30), (4, 40);
select t.id, u.b from only t join only (u) on u.id = t.id order by 1;
select t.id, u.b from t *, only u x where t.id = x.id;
select t.id, x.b from t *, only u x where t.id = x.id order by 1;
update only t set a = a * 2 from only u where u.id = t.id;
update t * set a = a + 1 where id = 1;
delete from only t using u * where u.id = t.id and t.id = 3;
select * from t * order by id;
table only t;
alter table only t alter a set default 5;
alter table if exists only t alter a drop default;
create view v as select * from only t;
select count(*) from only v;
drop view v;
select * from only nope;
truncate only u, only (t);
----
CREATE TABLE
CREATE TABLE
INSERT 0 3
INSERT 0 3
id:int4|b:int4
1|10
3|30
ERROR 42P01: invalid reference to FROM-clause entry for table "u" [at 14]
HINT: Perhaps you meant to reference the table alias "x".
id:int4|b:int4
1|10
3|30
UPDATE 2
UPDATE 1
DELETE 1
id:int4|a:int4|s:text
1|3|x
2|NULL|y
id:int4|a:int4|s:text
1|3|x
2|NULL|y
ALTER TABLE
ALTER TABLE
CREATE VIEW
count:int8
2
DROP VIEW
ERROR 42P01: relation "nope" does not exist [at 20]
TRUNCATE TABLE

# UNIQUE with INCLUDE and NULLS NOT DISTINCT.
create table n (a int unique nulls not distinct, b int, c int, unique nulls not distinct (b, c),
unique (b) include (a, c), constraint named unique nulls distinct (c) include (b));
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'n'::regclass order by 1;
select indexrelid::regclass, indnatts, indnkeyatts, indnullsnotdistinct from pg_index where indrelid = 'n'::regclass
order by 1::text;
insert into n values (1, 1, null), (null, 2, null);
insert into n values (null, 3, 3);
insert into n values (5, 1, 2);
insert into n values (null, 3, 3) on conflict (a) do update set b = 7 returning *;
insert into n values (1, 8, 8) on conflict do nothing;
update n set a = null where a = 1;
delete from n where a is null;
insert into n values (null, 3, 3);
select * from n order by a;
----
CREATE TABLE
conname:name|pg_get_constraintdef:text
n_a_key|UNIQUE NULLS NOT DISTINCT (a)
n_b_a_c_key|UNIQUE (b) INCLUDE (a, c)
n_b_c_key|UNIQUE NULLS NOT DISTINCT (b, c)
named|UNIQUE (c) INCLUDE (b)
indexrelid:regclass|indnatts:int2|indnkeyatts:int2|indnullsnotdistinct:bool
n_a_key|1|1|t
n_b_c_key|2|2|t
n_b_a_c_key|3|1|f
named|2|1|f
INSERT 0 2
ERROR 23505: duplicate key value violates unique constraint "n_a_key"
DETAIL: Key (a)=(null) already exists.
ERROR 23505: duplicate key value violates unique constraint "n_b_a_c_key"
DETAIL: Key (b)=(1) already exists.
a:int4|b:int4|c:int4
NULL|7|NULL
INSERT 0 1
INSERT 0 0
ERROR 23505: duplicate key value violates unique constraint "n_a_key"
DETAIL: Key (a)=(null) already exists.
DELETE 1
INSERT 0 1
a:int4|b:int4|c:int4
1|1|NULL
NULL|3|3

create table m (a int, b int);
insert into m values (null, 1), (null, 2);
alter table m add unique nulls not distinct (a);
alter table m add unique (a) include (b), add column d int unique nulls not distinct;
create unique index on m (a) nulls not distinct;
create unique index m_i on m (b) include (a) nulls not distinct where b > 0;
select pg_get_indexdef('m_i'::regclass);
alter table m add unique (a) include (nope);
alter table m add constraint k unique using index m_j;
create table o (like m including indexes);
select indexdef from pg_indexes where tablename = 'o' order by 1;
alter table m drop column b;
select conname from pg_constraint where conrelid = 'm'::regclass;
create table p (a int, b int, primary key (a) include (b));
----
CREATE TABLE
INSERT 0 2
ERROR 23505: could not create unique index "m_a_key"
DETAIL: Key (a)=(null) is duplicated.
ERROR 23505: could not create unique index "m_d_key"
DETAIL: Key (d)=(null) is duplicated.
ERROR 23505: could not create unique index "m_a_idx"
DETAIL: Key (a)=(null) is duplicated.
CREATE INDEX
pg_get_indexdef:text
CREATE UNIQUE INDEX m_i ON public.m USING btree (b) INCLUDE (a) NULLS NOT DISTINCT WHERE (b > 0)
ERROR 42703: column "nope" named in key does not exist [at 19]
ERROR 42704: index "m_j" does not exist [at 19]
CREATE TABLE
indexdef:text
CREATE UNIQUE INDEX o_b_a_idx ON public.o USING btree (b) INCLUDE (a) NULLS NOT DISTINCT WHERE (b > 0)
ALTER TABLE
conname:name
ERROR 0A000: INCLUDE of a primary key is not supported yet [at 44]

# COLLATE: text is in the order of its bytes, as "C" says.
insert into t values (1, 1, 'b'), (2, 2, 'B'), (3, 3, 'a');
select s from t order by s collate "C";
select s from t order by s collate pg_catalog."default" desc, id;
select s collate "POSIX" < 'a', s > 'a' collate "ucs_basic", array['a'] collate "C" = array['b'] from t where id = 1;
create table c (a char(3) collate "C", b text[] collate "POSIX", d varchar(4) collate "default");
create index on c (a collate "C", d collate "POSIX" desc);
select s from t order by s collate "xx_XX";
select s from t order by s collate c;
select s collate public."C" from t;
select id collate "C" from t;
select id collate "nope" from t;
create table d (a text collate "xx_XX");
create table d (a int collate "C");
create table d (a int collate "nope");
create index on t (a collate "C");
create index on t (s collate "nope");
----
INSERT 0 3
s:text
B
a
b
s:text
b
a
B
?column?:bool|?column?:bool|?column?:bool
f|t|f
CREATE TABLE
CREATE INDEX
ERROR 42704: collation "xx_XX" for encoding "UTF8" does not exist [at 28]
ERROR 42704: collation "c" for encoding "UTF8" does not exist [at 28]
ERROR 42704: collation "public.C" for encoding "UTF8" does not exist [at 10]
ERROR 42804: collations are not supported by type integer [at 11]
ERROR 42804: collations are not supported by type integer [at 11]
ERROR 42704: collation "xx_XX" for encoding "UTF8" does not exist [at 24]
ERROR 42804: collations are not supported by type integer [at 23]
ERROR 42704: collation "nope" for encoding "UTF8" does not exist [at 23]
ERROR 42804: collations are not supported by type integer
ERROR 42704: collation "nope" for encoding "UTF8" does not exist

# Other forms.
select id from t order by id using >;
select id from t order by a using < nulls first, id using < limit 1;
select id from t order by id using =;
select substring('Thomas' similar '%#"o_a#"_' escape '#'), substring('Thomas' from '%#"o_a#"_' for '#');
select * from rows from (generate_series(1, 2), unnest(array['x', 'y', 'z'])) with ordinality as r (a, b, n);
select * from unnest(array[1, 2], array['a']) with ordinality;
select id, n, e from t, unnest(array[id, a], array[1]) with ordinality as r (e, f, n) order by 1, 2 limit 3;
select t.id, u.id from t full join (values (1, 5), (2, 6), (4, 7)) as u (id, b) on t.id = u.id and u.b > 5 order by 1, 2;
select t.id from t full join t as u on t.id = u.id and false order by 1;
select t.id from t full join t as u on t.id < u.id;
select U&'d\0061t\+000061';
----
id:int4
3
2
1
id:int4
1
ERROR 42809: operator = is not a valid ordering operator [at 36]
HINT: Ordering operators must be "<" or ">" members of btree operator families.
substring:text|substring:text
oma|oma
a:int4|b:text|n:int8
1|x|1
2|y|2
NULL|z|3
unnest:int4|unnest:text|ordinality:int8
1|a|1
2|NULL|2
id:int4|n:int8|e:int4
1|1|1
1|2|1
2|1|2
id:int4|id:int4
1|NULL
2|2
3|NULL
NULL|1
NULL|4
id:int4
1
2
3
NULL
NULL
NULL
ERROR 0A000: FULL JOIN is only supported with merge-joinable or hash-joinable join conditions
?column?:text
data

# A star behind ONLY, garbage behind ALTER TABLE, operators of ORDER BY, escapes.
create table st (a int);
insert into st values (1), (2);
select * from only st *;
select * from only (st) *;
update only st * set a = 1;
alter table only st * add c int;
alter table st garbage;
alter table st alter a set x;
alter table st validate a;
alter table st set logged;
select a from st order by a using operator(pg_catalog.>);
select a from st order by a using operator(pg_catalog.=);
select a from st fetch first 2 rows with ties;
select U&'d!0061t!+000061' uescape '!', U&"\0061" from st order by 2 limit 1;
select 1 as U&"d!0061t" uescape '!';
select U&'d!006' uescape '!';
select U&'d' uescape 'a';
drop table st;
----
CREATE TABLE
INSERT 0 2
ERROR 42601: syntax error at or near "*" [at 23]
ERROR 42601: syntax error at or near "*" [at 25]
ERROR 42601: syntax error at or near "*" [at 16]
ERROR 42601: syntax error at or near "*" [at 21]
ERROR 42601: syntax error at or near "garbage" [at 16]
ERROR 42601: syntax error at or near "x" [at 28]
ERROR 42601: syntax error at or near "a" [at 25]
ERROR 0A000: this form of ALTER TABLE is not supported yet
a:int4
2
1
ERROR 42809: operator = is not a valid ordering operator [at 35]
HINT: Ordering operators must be "<" or ">" members of btree operator families.
ERROR 42601: WITH TIES cannot be specified without ORDER BY clause
?column?:text|a:int4
data|1
dat:int4
1
ERROR 42601: invalid Unicode escape [at 12]
HINT: Unicode escapes must be \XXXX or \+XXXXXX.
ERROR 42601: invalid Unicode escape character at or near "'a'" [at 22]
DROP TABLE

# The options of keys.
create table ki (a int, b int, unique (a) include ());
create table ki (a int, b int, unique (a) include (b c));
create table ki (a int, b int, unique (a) include (b) with fillfactor);
create table ki (a int, b int, unique (a) include (b) with (nope = 1));
create table ki (a int, b int, unique (a) include (b) with (fillfactor = 70), primary key (b) with (fillfactor = 80));
alter table ki add constraint k unique (b, a) with (deduplicate_items = off, fillfactor = 90);
select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'ki'::regclass order by 1;
drop table ki;
----
ERROR 42601: syntax error at or near ")" [at 52]
ERROR 42601: syntax error at or near "c" [at 54]
ERROR 42601: syntax error at or near "fillfactor" [at 60]
ERROR 22023: unrecognized parameter "nope"
CREATE TABLE
ALTER TABLE
pg_get_constraintdef:text
PRIMARY KEY (b)
UNIQUE (a) INCLUDE (b)
UNIQUE (b, a)
DROP TABLE
