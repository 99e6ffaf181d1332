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
select attname, histogram_bounds is null as no_histogram from pg_stats where tablename = 't';
create table h (a int, b text, c date, d numeric(4,1));
insert into h select i * i, 'x, ' || i, date '2020-01-01' + i, i / 2.0 from generate_series(1, 5) i;
analyze h;
select attname, avg_width, histogram_bounds from pg_stats where tablename = 'h';
drop table h;
----
CREATE TABLE
CREATE INDEX
CREATE INDEX
INSERT 0 1000
relname:name|reltuples:float4
t|-1
t_pkey|-1
t_some|-1
t_v|-1
table_constraints|-1
table_privileges|-1
tables|-1
transforms|-1
triggered_update_columns|-1
triggers|-1
count:int8
0
ANALYZE
relname:name|reltuples:float4
t|1000
t_pkey|1000
t_some|-1
t_v|1000
table_constraints|-1
table_privileges|-1
tables|-1
transforms|-1
triggered_update_columns|-1
triggers|-1
attname:name|inherited:bool|null_frac:float4|avg_width:int4|n_distinct:float4|most_common_vals:anyarray|most_common_freqs:_float4
id|f|0|4|-1|NULL|NULL
v|f|0|4|10|{0,1,2,3,4,5,6,7,8,9}|{0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1}
name|f|0|4|-1|NULL|NULL
part|f|0.25|3|1|{1.5}|{0.75}
doc|f|0|3|0|NULL|NULL
note|f|1|0|0|NULL|NULL
attname:name|no_histogram:bool
id|f
v|t
name|f
part|t
doc|t
note|t
CREATE TABLE
INSERT 0 5
ANALYZE
attname:name|avg_width:int4|histogram_bounds:anyarray
a|4|{1,4,9,16,25}
b|5|{"x, 1","x, 2","x, 3","x, 4","x, 5"}
c|4|{2020-01-02,2020-01-03,2020-01-04,2020-01-05,2020-01-06}
d|3|{0.5,1.0,1.5,2.0,2.5}
DROP TABLE

# Some columns; the others keep what they have. The number of rows is that of the table.
delete from t where id > 500;
update t set v = 77, note = 'x';
analyze verbose t (v, note);
select attname, null_frac, n_distinct, most_common_vals, most_common_freqs from pg_stats where tablename = 't' and attname in ('id', 'v', 'note');
select reltuples from pg_class where relname = 't';
vacuum (analyze) t;
select attname, n_distinct from pg_stats where tablename = 't';
----
DELETE 500
UPDATE 500
ANALYZE
attname:name|null_frac:float4|n_distinct:float4|most_common_vals:anyarray|most_common_freqs:_float4
id|0|-1|NULL|NULL
v|0|1|{77}|{1}
note|0|1|{x}|{1}
reltuples:float4
500
VACUUM
attname:name|n_distinct:float4
id|-1
v|1
name|-1
part|1
doc|0
note|1

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
TRUNCATE TABLE
reltuples:float4
-1
count:int8
6
ALTER TABLE
ALTER TABLE
attname:name
id
name
part
doc
ANALYZE
reltuples:float4
0
DROP TABLE
count:int8
0

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
CREATE TABLE
CREATE TABLE
INSERT 0 3
INSERT 0 1
ANALYZE
tablename:name|attname:name|n_distinct:float4
a|x|-0.6666667
b|y|-1
VACUUM
BEGIN
INSERT 0 1
ANALYZE
ROLLBACK
reltuples:float4
4
BEGIN
CREATE TABLE
INSERT 0 2
ANALYZE
reltuples:float4
-1
ROLLBACK
count:int8
0
BEGIN
ANALYZE
COMMIT
CREATE TABLE
INSERT 0 1
ANALYZE
temporary:bool|attname:name|n_distinct:float4
t|k|-1

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
CREATE VIEW
CREATE SEQUENCE
CREATE INDEX
ERROR 42P01: relation "nosuch" does not exist
ERROR 42703: column "nosuch" of relation "a" does not exist
ERROR 42701: column "x" of relation "a" appears more than once
ERROR 3F000: schema "nosuch" does not exist
ERROR 0A000: cross-database references are not implemented: "other.public.a"
ERROR 42601: unrecognized ANALYZE option "foo" [at 10]
ERROR 42601: verbose requires a Boolean value
ANALYZE
WARNING 01000: skipping "view_of_a" --- cannot analyze non-tables or special system tables
ANALYZE
WARNING 01000: skipping "s" --- cannot analyze non-tables or special system tables
ANALYZE
WARNING 01000: skipping "a_x" --- cannot vacuum non-tables or special system tables
VACUUM
ERROR 0A000: ANALYZE option must be specified when a column list is provided
ERROR 42601: unrecognized VACUUM option "foo" [at 9]
ERROR 42601: syntax error at or near "verbose" [at 16]
VACUUM
VACUUM
ERROR 42601: syntax error at or near ")" [at 10]
ERROR 42601: syntax error at or near ";" [at 11]
ERROR 42601: syntax error at or near ";" [at 13]
ANALYZE
BEGIN
ERROR 25001: VACUUM cannot run inside a transaction block
ROLLBACK
