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

# What CREATE INDEX refuses.
create index named on t (c);
create index t on t (c);
create index on t (nope);
create index on t (a) include (nope);
create index on nope (a);
create index on t using hash (a);
create index on t using nope (a);
create unique index on t (a) nulls not distinct;
create index on t ((random() + a));
create index on t (a) where now() > '2020-01-01';
create index on t (a) where c;
create index on t (a) with (nope = 1);
create index on t (a text_ops);
create index public.x on t (a);
create table j (j json);
create index on j (j);
----

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
