# ANALYZE: statistics of tables, as pg_class and pg_stats show them.
create table t (id int primary key, v int, name text, part numeric, doc json, note text);
create index t_v on t (v);
create index t_some on t (name) where v > 5;
insert into t select i, i % 10, 'n' || i, case when i % 4 = 0 then null else 1.5 end, '{}', null from generate_series(1, 1000) i;
select relname, reltuples from pg_class where relname like 't%' order by 1;
select count(*) from pg_stats where tablename = 't';
analyze t;
select relname, reltuples from pg_class where relname like 't%' order by 1;
select attname, inherited, null_frac, avg_width, n_distinct, most_common_vals, most_common_freqs from pg_stats where schemaname = 'public' and tablename = 't';
select attname, array_length(string_to_array(histogram_bounds::text, ','), 1) as bounds, left(histogram_bounds::text, 20) as first from pg_stats where tablename = 't' and histogram_bounds is not null;
----

# Some columns; the others keep what they have. The number of rows is that of the table.
delete from t where id > 500;
update t set v = 77, note = 'x';
analyze verbose t (v, note);
select attname, null_frac, n_distinct, most_common_vals, most_common_freqs from pg_stats where tablename = 't' and attname in ('id', 'v', 'note');
select reltuples from pg_class where relname = 't';
vacuum (analyze) t;
select attname, n_distinct from pg_stats where tablename = 't';
----

# TRUNCATE forgets the number of rows, ALTER TYPE a column, DROP all of it.
truncate t;
select reltuples from pg_class where relname = 't';
select count(*) from pg_stats where tablename = 't';
alter table t alter column v type bigint;
alter table t drop column note;
select attname from pg_stats where tablename = 't';
analyze t;
select reltuples from pg_class where relname = 't';
drop table t;
select count(*) from pg_stats;
----

# All tables, several tables, within transactions.
create table a (x int);
create table b (y text primary key);
insert into a values (1), (1), (2);
insert into b values ('q');
analyze;
select tablename, attname, n_distinct from pg_stats order by 1, 2;
vacuum analyze a, b (y);
begin;
insert into a values (3);
analyze a;
rollback;
select reltuples from pg_class where relname = 'a';
begin;
create table c (z int);
insert into c values (1), (2);
analyze c;
select reltuples from pg_class where relname = 'c';
rollback;
select count(*) from pg_stats where tablename = 'c';
begin read only;
analyze b;
commit;
create temp table own (k int);
insert into own values (1);
analyze own;
select schemaname like 'pg_temp%' as temporary, attname, n_distinct from pg_stats where tablename = 'own';
----

# Errors and warnings.
create view view_of_a as select * from a;
create sequence s;
create index a_x on a (x);
analyze nosuch;
analyze a (nosuch);
analyze a (x, x);
analyze nosuch.a;
analyze other.public.a;
analyze (foo) a;
analyze (verbose maybe) a;
analyze (verbose, skip_locked off) a;
analyze view_of_a;
analyze s, a;
vacuum a_x;
vacuum a (x);
vacuum (foo) a;
vacuum analyze verbose a;
vacuum full freeze verbose analyze a;
vacuum (full, freeze off, parallel 2, index_cleanup auto) a;
analyze ();
analyze a,;
analyze a (x;
analyze pg_class;
begin;
vacuum analyze a;
rollback;
----
