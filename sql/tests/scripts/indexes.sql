# Names are chosen as PostgreSQL chooses them.
create table t (a int, b text, c int, d numeric(6, 2));
create index on t (a);
create index on t (a);
create index on t (a, b desc, (a + c));
create unique index on t (lower(b)) where c > 0;
create index named on t using btree (b text_pattern_ops asc nulls first) include (c) with (fillfactor = 70);
create index concurrently if not exists named on t (c);
create index if not exists named on t (c);
select 't_a_idx'::regclass, 't_a_idx1'::regclass, 't_a_b_expr_idx'::regclass, 't_lower_idx'::regclass, 'named'::regclass;
----
CREATE TABLE
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE INDEX
NOTICE 42P07: relation "named" already exists, skipping
CREATE INDEX
NOTICE 42P07: relation "named" already exists, skipping
CREATE INDEX
regclass:regclass|regclass:regclass|regclass:regclass|regclass:regclass|regclass:regclass
t_a_idx|t_a_idx1|t_a_b_expr_idx|t_lower_idx|named

# What CREATE INDEX refuses.
create index named on t (c);
create index t on t (c);
create index on t (nope);
create index on t (a) include (nope);
create index on nope (a);
create index on t using hash (a);
create index on t using nope (a);
create index on t ((random() + a));
create index on t (a) where now() > '2020-01-01';
create index on t (a) where c;
create index on t (a) with (nope = 1);
create index on t (a text_ops);
create index public.x on t (a);
create table j (j json);
create index on j (j);
----
ERROR 42P07: relation "named" already exists
ERROR 42P07: relation "t" already exists
ERROR 42703: column "nope" does not exist
ERROR 42703: column "nope" does not exist
ERROR 42P01: relation "nope" does not exist
ERROR 0A000: access method "hash" is not supported yet [at 17]
ERROR 42704: access method "nope" does not exist
ERROR 42P17: functions in index expression must be marked IMMUTABLE
ERROR 42P17: functions in index predicate must be marked IMMUTABLE
ERROR 42804: argument of WHERE must be type boolean, not type integer [at 29]
ERROR 22023: unrecognized parameter "nope"
ERROR 42804: operator class "text_ops" does not accept data type integer
ERROR 42601: syntax error at or near "." [at 20]
CREATE TABLE
ERROR 42704: data type json has no default operator class for access method "btree"
HINT: You must specify an operator class for the index or define a default operator class for the data type.

# An index is no table.
select * from named;
drop table named;
truncate named;
drop index t;
drop index nope;
drop index if exists nope;
drop index t_a_idx1, t_a_idx;
drop index concurrently if exists t_a_b_expr_idx;
create table named (a int);
----
ERROR 42809: "named" is an index [at 15]
ERROR 42809: "named" is not a table
HINT: Use DROP INDEX to remove an index.
ERROR 42809: "named" is not a table
ERROR 42809: "t" is not an index
HINT: Use DROP TABLE to remove a table.
ERROR 42704: index "nope" does not exist
NOTICE 00000: index "nope" does not exist, skipping
DROP INDEX
DROP INDEX
DROP INDEX
ERROR 42P07: relation "named" already exists

# Unique indexes. NULLs are distinct, rows outside of a partial index may repeat.
insert into t values (1, 'One', 1, 1.50), (2, 'one', 0, 1.50), (3, null, 1, null), (4, null, 1, null);
insert into t values (5, 'ONE', 7, 2);
begin;
insert into t values (5, 'ONE', 7, 2);
commit;
update t set c = 1 where a = 2;
update t set b = 'two' where a = 1;
update t set c = 1 where a = 2;
select * from t order by a;
drop table t;
drop table j;
----
INSERT 0 4
ERROR 23505: duplicate key value violates unique constraint "t_lower_idx"
DETAIL: Key (lower(b))=(one) already exists.
BEGIN
ERROR 23505: duplicate key value violates unique constraint "t_lower_idx"
DETAIL: Key (lower(b))=(one) already exists.
ROLLBACK
ERROR 23505: duplicate key value violates unique constraint "t_lower_idx"
DETAIL: Key (lower(b))=(one) already exists.
UPDATE 1
UPDATE 1
a:int4|b:text|c:int4|d:numeric
1|two|1|1.50
2|one|1|1.50
3|NULL|1|NULL
4|NULL|1|NULL
DROP TABLE
DROP TABLE

# UNIQUE constraints of columns and tables.
create table u (id int primary key, a int unique, b int, c int constraint cc unique, unique (b, c), unique (a), constraint named2 unique (b));
select 'u_pkey'::regclass, 'u_a_key'::regclass, 'cc'::regclass, 'u_b_c_key'::regclass, 'named2'::regclass;
insert into u values (1, 1, 1, 1), (2, 2, 2, 2);
insert into u values (3, 1, 3, 3);
insert into u values (1, 3, 3, 3);
insert into u values (3, 3, 1, 3);
insert into u values (3, 3, 3, 2);
insert into u values (3, 3, 3, 3), (4, 4, 4, 3);
drop index cc;
drop index u_pkey;
create table v (a int, unique (a, a));
create table v (a int, unique (b));
create table v (a int, constraint u_pkey primary key (a));
create table v (a int unique deferrable);
create table v (a int, constraint v unique (a));
----
CREATE TABLE
regclass:regclass|regclass:regclass|regclass:regclass|regclass:regclass|regclass:regclass
u_pkey|u_a_key|cc|u_b_c_key|named2
INSERT 0 2
ERROR 23505: duplicate key value violates unique constraint "u_a_key"
DETAIL: Key (a)=(1) already exists.
ERROR 23505: duplicate key value violates unique constraint "u_pkey"
DETAIL: Key (id)=(1) already exists.
ERROR 23505: duplicate key value violates unique constraint "named2"
DETAIL: Key (b)=(1) already exists.
ERROR 23505: duplicate key value violates unique constraint "cc"
DETAIL: Key (c)=(2) already exists.
ERROR 23505: duplicate key value violates unique constraint "cc"
DETAIL: Key (c)=(3) already exists.
ERROR 2BP01: cannot drop index cc because constraint cc on table u requires it
HINT: You can drop constraint cc on table u instead.
ERROR 2BP01: cannot drop index u_pkey because constraint u_pkey on table u requires it
HINT: You can drop constraint u_pkey on table u instead.
ERROR 42701: column "a" appears twice in unique constraint [at 24]
ERROR 42703: column "b" named in key does not exist [at 24]
ERROR 42P07: relation "u_pkey" already exists
ERROR 0A000: DEFERRABLE constraints are not supported yet [at 17]
ERROR 42P07: relation "v" already exists

# Keys that rows exchange are duplicates, as in PostgreSQL; keys that earlier rows give up are free.
update u set a = 3 - a;
update u set id = 3 - id;
update u set a = a + 1;
update u set a = a - 1;
select * from u order by id;
begin;
delete from u where id = 1;
insert into u values (7, 0, 1, 1);
update u set a = 5 where id = 7;
insert into u values (8, 0, 9, 9);
commit;
select * from u order by id;
----
ERROR 23505: duplicate key value violates unique constraint "u_a_key"
DETAIL: Key (a)=(2) already exists.
ERROR 23505: duplicate key value violates unique constraint "u_pkey"
DETAIL: Key (id)=(2) already exists.
ERROR 23505: duplicate key value violates unique constraint "u_a_key"
DETAIL: Key (a)=(2) already exists.
UPDATE 2
id:int4|a:int4|b:int4|c:int4
1|0|1|1
2|1|2|2
BEGIN
DELETE 1
INSERT 0 1
UPDATE 1
INSERT 0 1
COMMIT
id:int4|a:int4|b:int4|c:int4
2|1|2|2
7|5|1|1
8|0|9|9

# ON CONFLICT takes any unique key.
insert into u values (9, 5, 50, 50) on conflict (a) do nothing;
insert into u values (9, 5, 50, 50) on conflict (a) do update set b = excluded.b returning *;
insert into u values (9, 5, 51, 51) on conflict on constraint u_a_key do update set b = excluded.b, id = u.id + 100 returning *;
insert into u values (9, 5, 52, 52) on conflict do nothing;
insert into u values (10, 10, 51, 60) on conflict (a) do nothing;
insert into u values (10, 10, 51, 60) on conflict (b) do update set a = 10 returning *;
insert into u values (11, 11, 61, 61), (12, 11, 62, 62) on conflict (a) do nothing returning id;
insert into u values (13, 13, 63, 63), (14, 13, 64, 64) on conflict (a) do update set b = 0;
insert into u values (11, 15, 65, 65) on conflict (a) do update set b = 0;
insert into u values (2, 15, 66, 66) on conflict (c, b) do nothing;
insert into u values (1, 1, 1, 1) on conflict (b, a) do nothing;
insert into u values (1, 1, 1, 1) on conflict on constraint nope do nothing;
begin;
insert into u values (20, 20, 20, 20) on conflict (a) do update set b = 1;
insert into u values (21, 20, 21, 21) on conflict (a) do update set b = 21 returning *;
insert into u values (22, 22, 21, 22) on conflict (b) do update set a = 23 returning *;
insert into u values (24, 20, 24, 24) on conflict (a) do nothing returning *;
insert into u values (25, 25, 25, 25) on conflict (a) do update set b = 1;
insert into u values (25, 26, 26, 26) on conflict (a) do update set b = 1;
commit;
select * from u order by id;
drop table u;
----
INSERT 0 0
id:int4|a:int4|b:int4|c:int4
7|5|50|1
INSERT 0 1
id:int4|a:int4|b:int4|c:int4
107|5|51|1
INSERT 0 1
INSERT 0 0
ERROR 23505: duplicate key value violates unique constraint "named2"
DETAIL: Key (b)=(51) already exists.
id:int4|a:int4|b:int4|c:int4
107|10|51|1
INSERT 0 1
id:int4
11
INSERT 0 1
ERROR 21000: ON CONFLICT DO UPDATE command cannot affect row a second time
HINT: Ensure that no rows proposed for insertion within the same command have duplicate constrained values.
ERROR 23505: duplicate key value violates unique constraint "u_pkey"
DETAIL: Key (id)=(11) already exists.
ERROR 23505: duplicate key value violates unique constraint "u_pkey"
DETAIL: Key (id)=(2) already exists.
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification
ERROR 42704: constraint "nope" for table "u" does not exist
BEGIN
INSERT 0 1
id:int4|a:int4|b:int4|c:int4
20|20|21|20
INSERT 0 1
id:int4|a:int4|b:int4|c:int4
20|23|21|20
INSERT 0 1
id:int4|a:int4|b:int4|c:int4
24|20|24|24
INSERT 0 1
INSERT 0 1
ERROR 23505: duplicate key value violates unique constraint "u_pkey"
DETAIL: Key (id)=(25) already exists.
ROLLBACK
id:int4|a:int4|b:int4|c:int4
2|1|2|2
8|0|9|9
11|11|61|61
107|10|51|1
DROP TABLE

# A table without a primary key, and a unique index.
create table h (a int unique, b int);
insert into h values (1, 1), (2, 2);
insert into h values (1, 3) on conflict (a) do update set b = h.b + excluded.b returning *;
insert into h values (1, 3) on conflict do nothing;
insert into h values (1, 3);
update h set a = 7 where a = 1;
insert into h values (1, 3);
delete from h where a = 7;
select * from h order by a;
----
CREATE TABLE
INSERT 0 2
a:int4|b:int4
1|4
INSERT 0 1
INSERT 0 0
ERROR 23505: duplicate key value violates unique constraint "h_a_key"
DETAIL: Key (a)=(1) already exists.
UPDATE 1
INSERT 0 1
DELETE 1
a:int4|b:int4
1|3
2|2

# ALTER TABLE: keys of tables with rows, and their constraints.
alter table h add primary key (b);
select 'h_pkey'::regclass;
insert into h values (4, 4), (5, 4);
alter table h add constraint again primary key (a);
alter table h drop constraint h_pkey;
insert into h values (4, 4), (5, 4);
alter table h add primary key (b);
alter table h add constraint hb unique (b);
update h set b = 5 where a = 5;
alter table h add constraint hb unique (b), add primary key (a);
insert into h values (6, 5);
alter table h drop constraint hb;
insert into h values (6, 5), (7, null);
alter table h drop constraint hb;
alter table h drop constraint if exists hb;
alter table h add constraint h unique (b);
alter table only h add unique (nope);
alter table nope add unique (b);
alter table if exists nope add unique (b);
alter table h add check (b > 0);
alter table h add column c int;
insert into h values (null, 5);
select * from h order by a;
drop table h;
create table n (a int);
insert into n values (1), (null);
alter table n add primary key (a);
drop table n;
----
ALTER TABLE
regclass:regclass
h_pkey
ERROR 23505: duplicate key value violates unique constraint "h_pkey"
DETAIL: Key (b)=(4) already exists.
ERROR 42P16: multiple primary keys for table "h" are not allowed
ALTER TABLE
INSERT 0 2
ERROR 23505: could not create unique index "h_pkey"
DETAIL: Key (b)=(4) is duplicated.
ERROR 23505: could not create unique index "hb"
DETAIL: Key (b)=(4) is duplicated.
UPDATE 1
ALTER TABLE
ERROR 23505: duplicate key value violates unique constraint "hb"
DETAIL: Key (b)=(5) already exists.
ALTER TABLE
ERROR 23502: null value in column "b" of relation "h" violates not-null constraint
DETAIL: Failing row contains (7, null).
ERROR 42704: constraint "hb" of relation "h" does not exist
NOTICE 00000: constraint "hb" of relation "h" does not exist, skipping
ALTER TABLE
ERROR 42P07: relation "h" already exists
ERROR 42703: column "nope" named in key does not exist [at 24]
ERROR 42P01: relation "nope" does not exist
NOTICE 00000: relation "nope" does not exist, skipping
ALTER TABLE
ALTER TABLE
ALTER TABLE
ERROR 23502: null value in column "a" of relation "h" violates not-null constraint
DETAIL: Failing row contains (null, 5, null).
a:int4|b:int4|c:int4
1|3|NULL
2|2|NULL
4|4|NULL
5|5|NULL
DROP TABLE
CREATE TABLE
INSERT 0 2
ERROR 23502: column "a" of relation "n" contains null values
DROP TABLE

# A schema change in a block, with rows of the block and without.
create table s (id int primary key, a int);
insert into s values (1, 1), (2, 1);
begin;
create unique index on s (a);
rollback;
begin;
insert into s values (3, 3);
create index s_a on s (a);
select id from s where a = 3;
explain select id from s where a = 3;
commit;
select id from s where a = 1 order by id;
begin;
create table s2 (id int, a int);
insert into s2 values (1, 10), (2, 20);
create unique index on s2 (a);
alter table s2 add primary key (id);
insert into s2 values (3, 20);
rollback;
begin isolation level repeatable read;
insert into s values (4, 4);
create index on s (id, a);
rollback;
begin;
truncate s;
insert into s values (5, 5);
create index s_b on s (a desc);
commit;
select * from s where a > 0 order by a desc;
explain select id from s where a > 0 order by a desc limit 5;
drop index s_a, s_b;
drop table s;
----
CREATE TABLE
INSERT 0 2
BEGIN
ERROR 23505: could not create unique index "s_a_idx"
DETAIL: Key (a)=(1) is duplicated.
ROLLBACK
BEGIN
INSERT 0 1
CREATE INDEX
id:int4
3
Index Only Scan using s_a on s
  Index Cond: (a = 3)
COMMIT
id:int4
1
2
BEGIN
CREATE TABLE
INSERT 0 2
CREATE INDEX
ALTER TABLE
ERROR 23505: duplicate key value violates unique constraint "s2_a_idx"
DETAIL: Key (a)=(20) already exists.
ROLLBACK
BEGIN
INSERT 0 1
CREATE INDEX
ROLLBACK
BEGIN
TRUNCATE TABLE
INSERT 0 1
CREATE INDEX
COMMIT
id:int4|a:int4
5|5
Limit
  ->  Index Only Scan Backward using s_a on s
        Index Cond: (a > 0)
DROP INDEX
DROP TABLE

# A unique key that another transaction gives up or takes is waited for.
create table w (id int primary key, a int unique, b int);
insert into w values (1, 1, 1), (2, 2, 2);
begin;
delete from w where id = 1;
\session b
begin;
\waits
insert into w values (3, 1, 3);
\session main
commit;
\session b
\answer
commit;
begin;
update w set a = 4 where a = 2 returning *;
\session main
\waits
insert into w values (4, 4, 4);
\session b
commit;
\session main
\answer
begin;
update w set a = 5 where a = 4;
\session b
\waits
insert into w values (6, 4, 6) on conflict (a) do update set b = 60 returning *;
\session main
rollback;
\session b
\answer
begin isolation level repeatable read;
select * from w order by a;
\session main
insert into w values (7, 7, 7);
delete from w where a = 1;
\session b
insert into w values (8, 7, 8);
rollback;
begin isolation level repeatable read;
select * from w order by a;
\session main
update w set a = 9 where a = 7;
\session b
update w set b = 0 where a = 7;
rollback;
select * from w order by a;
\session main
drop table w;
----
CREATE TABLE
INSERT 0 2
BEGIN
DELETE 1
BEGIN
COMMIT
INSERT 0 1
COMMIT
BEGIN
id:int4|a:int4|b:int4
2|4|2
UPDATE 1
COMMIT
ERROR 23505: duplicate key value violates unique constraint "w_a_key"
DETAIL: Key (a)=(4) already exists.
BEGIN
UPDATE 1
ROLLBACK
id:int4|a:int4|b:int4
2|4|60
INSERT 0 1
BEGIN
id:int4|a:int4|b:int4
3|1|3
2|4|60
INSERT 0 1
DELETE 1
ERROR 23505: duplicate key value violates unique constraint "w_a_key"
DETAIL: Key (a)=(7) already exists.
ROLLBACK
BEGIN
id:int4|a:int4|b:int4
2|4|60
7|7|7
UPDATE 1
ERROR 40001: could not serialize access due to concurrent update
DETAIL: write conflict on "t\x00\x00@-r\x81\x07": committed at 100000.*, after 100000.*
HINT: The transaction might succeed if retried.
ROLLBACK
id:int4|a:int4|b:int4
2|4|60
7|9|7
DROP TABLE

# DROP INDEX CASCADE takes the foreign keys to a unique index.
create table xp (a int, b int);
create unique index xpa on xp (a);
create unique index xpb on xp (b);
create table xc (x int references xp (a), y int references xp (b));
drop index xpa;
drop index xpa cascade;
select conname from pg_constraint where conrelid = 'xc'::regclass;
insert into xc values (1, null);
insert into xc values (1, 1);
create unique index xpa on xp (a);
delete from xc;
alter table xc add constraint f1 foreign key (x) references xp (a);
drop index xpa, xpb;
drop index xpa, xpb cascade;
select conname from pg_constraint where conrelid = 'xc'::regclass;
create table xs (a int, b int);
create unique index xsb on xs (b);
create unique index xcx on xc (x);
alter table xs add foreign key (a) references xs (b);
alter table xs add foreign key (b) references xc (x);
drop index xsb, xcx cascade;
select conname from pg_constraint where conrelid = 'xs'::regclass;
drop table xc;
drop table xs, xp;
----
CREATE TABLE
CREATE INDEX
CREATE INDEX
CREATE TABLE
ERROR 2BP01: cannot drop index xpa because other objects depend on it
DETAIL: constraint xc_x_fkey on table xc depends on index xpa
HINT: Use DROP ... CASCADE to drop the dependent objects too.
NOTICE 00000: drop cascades to constraint xc_x_fkey on table xc
DROP INDEX
conname:name
xc_y_fkey
INSERT 0 1
ERROR 23503: insert or update on table "xc" violates foreign key constraint "xc_y_fkey"
DETAIL: Key (y)=(1) is not present in table "xp".
CREATE INDEX
DELETE 1
ALTER TABLE
ERROR 2BP01: cannot drop desired object(s) because other objects depend on them
DETAIL: constraint xc_y_fkey on table xc depends on index xpb
constraint f1 on table xc depends on index xpa
HINT: Use DROP ... CASCADE to drop the dependent objects too.
NOTICE 00000: drop cascades to 2 other objects
DROP INDEX
conname:name
CREATE TABLE
CREATE INDEX
CREATE INDEX
ALTER TABLE
ALTER TABLE
NOTICE 00000: drop cascades to 2 other objects
DROP INDEX
conname:name
DROP TABLE
DROP TABLE

# An index is not built concurrently in a block.
create table conc (a int);
begin;
create index concurrently on conc (a);
rollback;
create index concurrently conc_a on conc (a);
begin;
create index conc_b on conc (a);
commit;
----
CREATE TABLE
BEGIN
ERROR 25001: CREATE INDEX CONCURRENTLY cannot run inside a transaction block
ROLLBACK
CREATE INDEX
BEGIN
CREATE INDEX
COMMIT
