# Sequences, serial and identity columns.

# Statements about sequences.
create sequence s;
select nextval('s'), nextval('s');
select currval('s'), lastval();
select last_value, log_cnt, is_called from s where last_value > 100;
create sequence s;
create sequence if not exists s;
create table s (a int);
create sequence bounded as smallint increment by 10 minvalue 5 maxvalue 30 start with 5 cache 1 no cycle;
select nextval('bounded'), nextval('bounded'), nextval('bounded');
select nextval('bounded');
alter sequence bounded cycle;
select nextval('bounded');
alter sequence bounded restart with 15;
select nextval('bounded');
alter sequence bounded restart;
select * from bounded;
select nextval('bounded');
alter sequence bounded no cycle increment by -5 maxvalue 40;
select nextval('bounded');
create sequence down increment -2;
select nextval('down'), nextval('down'), nextval('down');
----
CREATE SEQUENCE
nextval:int8|nextval:int8
1|2
currval:int8|lastval:int8
2|2
last_value:int8|log_cnt:int8|is_called:bool
ERROR 42P07: relation "s" already exists
NOTICE 42P07: relation "s" already exists, skipping
CREATE SEQUENCE
ERROR 42P07: relation "s" already exists
CREATE SEQUENCE
nextval:int8|nextval:int8|nextval:int8
5|15|25
ERROR 2200H: nextval: reached maximum value of sequence "bounded" (30)
ALTER SEQUENCE
nextval:int8
5
ALTER SEQUENCE
nextval:int8
15
ALTER SEQUENCE
last_value:int8|log_cnt:int8|is_called:bool
5|0|f
nextval:int8
5
ALTER SEQUENCE
ERROR 2200H: nextval: reached minimum value of sequence "bounded" (5)
CREATE SEQUENCE
nextval:int8|nextval:int8|nextval:int8
-1|-3|-5

# Errors of options.
create sequence e increment 0;
create sequence e minvalue 5 maxvalue 5;
create sequence e minvalue 5 start 4;
create sequence e maxvalue 5 start 6;
create sequence e cache 0;
create sequence e as smallint maxvalue 40000;
create sequence e as smallint minvalue -40000;
create sequence e as text;
create sequence e maxvalue 99999999999999999999;
create sequence e cycle cycle;
create sequence e owned by nothing;
create sequence e owned by missing.a;
alter sequence bounded restart with 400;
alter sequence missing restart;
alter sequence if exists missing restart;
----
ERROR 22023: INCREMENT must not be zero
ERROR 22023: MINVALUE (5) must be less than MAXVALUE (5)
ERROR 22023: START value (4) cannot be less than MINVALUE (5)
ERROR 22023: START value (6) cannot be greater than MAXVALUE (5)
ERROR 22023: CACHE (0) must be greater than zero
ERROR 22023: MAXVALUE (40000) is out of range for sequence data type smallint
ERROR 22023: MINVALUE (-40000) is out of range for sequence data type smallint
ERROR 22023: sequence type must be smallint, integer, or bigint
ERROR 22003: value "99999999999999999999" is out of range for type bigint
ERROR 42601: conflicting or redundant options
ERROR 42601: invalid OWNED BY option
HINT: Specify OWNED BY table.column or OWNED BY NONE.
ERROR 42P01: relation "missing" does not exist
ERROR 22023: RESTART value (400) cannot be greater than MAXVALUE (40)
ERROR 42P01: relation "missing" does not exist
NOTICE 00000: relation "missing" does not exist, skipping
ALTER SEQUENCE

# Values.
create sequence v;
select currval('v');
select setval('v', 10);
select currval('v'), nextval('v');
select setval('v', 20, false);
select nextval('v'), currval('v');
select setval('v', 0);
select setval('v', null);
select currval('v'), nextval('v'), currval('v');
select nextval('v') from generate_series(1, 5);
select nextval('missing');
select nextval('public.v'), nextval('v'::regclass), nextval('v'::text);
create table plain (a int);
select nextval('plain');
begin;
select nextval('v');
rollback;
select nextval('v');
begin read only;
select currval('v');
select nextval('v');
rollback;
begin read only;
select setval('v', 1);
rollback;
discard sequences;
select lastval();
select x.n from (select nextval('v') as n) x where x.n > 0;
select case when false then nextval('v') end, currval('v') - 1000 < 0;
alter sequence v rename to w;
select nextval('v');
select nextval('w') - currval('w');
alter sequence w rename to plain;
drop sequence plain;
drop sequence v;
drop sequence if exists v, w;
select lastval();
----
CREATE SEQUENCE
ERROR 55000: currval of sequence "v" is not yet defined in this session
setval:int8
10
currval:int8|nextval:int8
10|11
setval:int8
20
nextval:int8|currval:int8
20|20
ERROR 22003: setval: value 0 is out of bounds for sequence "v" (1..9223372036854775807)
setval:int8
NULL
currval:int8|nextval:int8|currval:int8
20|21|21
nextval:int8
22
23
24
25
26
ERROR 42P01: relation "missing" does not exist [at 16]
nextval:int8|nextval:int8|nextval:int8
27|28|29
CREATE TABLE
ERROR 42809: "plain" is not a sequence
BEGIN
nextval:int8
30
ROLLBACK
nextval:int8
31
BEGIN
currval:int8
31
ERROR 25006: cannot execute nextval() in a read-only transaction
ROLLBACK
BEGIN
ERROR 25006: cannot execute setval() in a read-only transaction
ROLLBACK
DISCARD SEQUENCES
ERROR 55000: lastval is not yet defined in this session
n:int8
32
case:int8|?column?:bool
NULL|t
ALTER SEQUENCE
ERROR 42P01: relation "v" does not exist [at 16]
?column?:int8
0
ERROR 42P07: relation "plain" already exists
ERROR 42809: "plain" is not a sequence
HINT: Use DROP TABLE to remove a table.
ERROR 42P01: sequence "v" does not exist
NOTICE 00000: sequence "v" does not exist, skipping
DROP SEQUENCE
ERROR 55000: lastval is not yet defined in this session

# Serial columns.
create table t (id serial primary key, b bigserial, c smallserial, d text default 'x');
insert into t (d) values ('a'), ('b') returning id, b, c, d;
insert into t default values returning id;
insert into t (id, d) values (default, 'c'), (100, 'd') returning id;
insert into t (d) select 'q' || g from generate_series(1, 3) g returning id, d;
update t set b = default where id <= 2 returning id, b;
select pg_get_serial_sequence('t', 'id'), pg_get_serial_sequence('t', 'd'), pg_get_serial_sequence('public.t', 'b');
select adnum, pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 't'::regclass order by adnum;
select column_name, column_default, is_nullable, data_type, is_identity from information_schema.columns where table_name = 't' order by ordinal_position;
alter sequence t_id_seq rename to renamed;
insert into t (d) values ('r') returning id;
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 't'::regclass and adnum = 1;
drop sequence renamed;
create table t_x (id serial);
create table t2 (id serial default 5);
create table t2 (id serial null);
insert into t (d) values ('z') on conflict (id) do update set id = default returning id > 0;
truncate t;
insert into t (d) values ('r') returning b;
truncate t restart identity;
insert into t (d) values ('r') returning id, b, c;
drop table t;
select relname from pg_class where relkind = 'S' order by 1;
create table sbtest1 (id serial, k integer default '0' not null, c char(120) default '' not null, pad char(60) default '' not null, primary key (id));
insert into sbtest1 (k, c, pad) values (1, 'a', 'b'), (2, 'c', 'd');
select id, k from sbtest1 order by id;
----
CREATE TABLE
id:int4|b:int8|c:int2|d:text
1|1|1|a
2|2|2|b
INSERT 0 2
id:int4
3
INSERT 0 1
id:int4
4
100
INSERT 0 2
id:int4|d:text
5|q1
6|q2
7|q3
INSERT 0 3
id:int4|b:int8
1|9
2|10
UPDATE 2
pg_get_serial_sequence:text|pg_get_serial_sequence:text|pg_get_serial_sequence:text
public.t_id_seq|NULL|public.t_b_seq
adnum:int2|pg_get_expr:text
1|nextval('t_id_seq'::regclass)
2|nextval('t_b_seq'::regclass)
3|nextval('t_c_seq'::regclass)
4|'x'::text
column_name:name|column_default:varchar|is_nullable:varchar|data_type:varchar|is_identity:varchar
id|nextval('t_id_seq'::regclass)|NO|integer|NO
b|nextval('t_b_seq'::regclass)|NO|bigint|NO
c|nextval('t_c_seq'::regclass)|NO|smallint|NO
d|'x'::text|YES|text|NO
ALTER SEQUENCE
id:int4
8
INSERT 0 1
pg_get_expr:text
nextval('renamed'::regclass)
ERROR 2BP01: cannot drop sequence renamed because other objects depend on it
DETAIL: default value for column id of table t depends on sequence renamed
HINT: Use DROP ... CASCADE to drop the dependent objects too.
CREATE TABLE
ERROR 42601: multiple default values specified for column "id" of table "t2"
ERROR 42601: conflicting NULL/NOT NULL declarations for column "id" of table "t2"
?column?:bool
t
INSERT 0 1
TRUNCATE TABLE
b:int8
13
INSERT 0 1
TRUNCATE TABLE
id:int4|b:int8|c:int2
1|1|1
INSERT 0 1
DROP TABLE
relname:name
bounded
down
s
t_x_id_seq
CREATE TABLE
INSERT 0 2
id:int4|k:int4
1|1
2|2

# Identity columns.
create table i (id int generated always as identity (start with 10 increment by 5) primary key, v text);
insert into i (v) values ('a'), ('b') returning id;
insert into i values (1, 'c');
insert into i values (default, 'c') returning id;
insert into i overriding system value values (1, 'd') returning id;
insert into i overriding user value values (1, 'e') returning id;
insert into i select 7, 'f';
insert into i overriding user value select 7, 'f' returning id;
update i set id = 3;
update i set id = default where id = 1 returning id;
create table j (id bigint generated by default as identity, v text);
insert into j values (5, 'a') returning id;
insert into j (v) values ('b') returning id;
insert into j overriding user value values (5, 'c') returning id;
create table k (id text generated always as identity);
create table k (id int default 1 generated always as identity);
create table k (id int null generated always as identity);
select attname, attidentity, atthasdef, attnotnull from pg_attribute where attrelid = 'i'::regclass and attnum > 0 order by attnum;
select column_name, column_default, is_identity, identity_generation, identity_start, identity_increment, identity_cycle from information_schema.columns where table_name in ('i', 'j') order by table_name, ordinal_position;
select pg_get_serial_sequence('i', 'id');
select seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle, seqtypid::regtype from pg_sequence where seqrelid = 'i_id_seq'::regclass;
select sequencename, data_type, start_value, min_value, max_value, increment_by, cycle, cache_size from pg_sequences where sequencename like 'i_%' order by 1;
select sequence_name, data_type, start_value, minimum_value, maximum_value, increment, cycle_option from information_schema.sequences where sequence_name like 'i_%' order by 1;
select * from pg_sequence_parameters('i_id_seq'::regclass);
select pg_sequence_last_value('i_id_seq') > 0;
----
CREATE TABLE
id:int4
10
15
INSERT 0 2
ERROR 428C9: cannot insert a non-DEFAULT value into column "id"
DETAIL: Column "id" is an identity column defined as GENERATED ALWAYS.
HINT: Use OVERRIDING SYSTEM VALUE to override.
id:int4
20
INSERT 0 1
id:int4
1
INSERT 0 1
id:int4
25
INSERT 0 1
ERROR 428C9: cannot insert a non-DEFAULT value into column "id"
DETAIL: Column "id" is an identity column defined as GENERATED ALWAYS.
HINT: Use OVERRIDING SYSTEM VALUE to override.
id:int4
30
INSERT 0 1
ERROR 428C9: column "id" can only be updated to DEFAULT
DETAIL: Column "id" is an identity column defined as GENERATED ALWAYS.
id:int4
35
UPDATE 1
CREATE TABLE
id:int8
5
INSERT 0 1
id:int8
1
INSERT 0 1
id:int8
2
INSERT 0 1
ERROR 22023: identity column type must be smallint, integer, or bigint
ERROR 42601: both default and identity specified for column "id" of table "k" [at 34]
ERROR 42601: conflicting NULL/NOT NULL declarations for column "id" of table "k" [at 29]
attname:name|attidentity:char|atthasdef:bool|attnotnull:bool
id|a|f|t
v||f|f
column_name:name|column_default:varchar|is_identity:varchar|identity_generation:varchar|identity_start:varchar|identity_increment:varchar|identity_cycle:varchar
id|NULL|YES|ALWAYS|10|5|NO
v|NULL|NO|NULL|NULL|NULL|NO
id|NULL|YES|BY DEFAULT|1|1|NO
v|NULL|NO|NULL|NULL|NULL|NO
pg_get_serial_sequence:text
public.i_id_seq
seqstart:int8|seqincrement:int8|seqmin:int8|seqmax:int8|seqcache:int8|seqcycle:bool|seqtypid:regtype
10|5|1|2147483647|1|f|integer
sequencename:name|data_type:regtype|start_value:int8|min_value:int8|max_value:int8|increment_by:int8|cycle:bool|cache_size:int8
i_id_seq|integer|10|1|2147483647|5|f|1
sequence_name:name|data_type:varchar|start_value:varchar|minimum_value:varchar|maximum_value:varchar|increment:varchar|cycle_option:varchar
start_value:int8|minimum_value:int8|maximum_value:int8|increment:int8|cycle_option:bool|cache_size:int8|data_type:oid
10|1|2147483647|5|f|1|23
?column?:bool
t

# Other owners and defaults.
create sequence own owned by plain.a;
create table uses (a int default nextval('own'), b int);
insert into uses (b) values (1), (2) returning a;
drop sequence own;
drop table plain;
create schema other;
create sequence other.o;
create table other.q (id int default nextval('other.o'));
insert into other.q default values returning id;
create sequence other.x owned by sbtest1.id;
drop schema other cascade;
----
CREATE SEQUENCE
CREATE TABLE
a:int4
1
2
INSERT 0 2
ERROR 2BP01: cannot drop sequence own because other objects depend on it
DETAIL: default value for column a of table uses depends on sequence own
HINT: Use DROP ... CASCADE to drop the dependent objects too.
ERROR 2BP01: cannot drop table plain because other objects depend on it
DETAIL: default value for column a of table uses depends on sequence own
HINT: Use DROP ... CASCADE to drop the dependent objects too.
CREATE SCHEMA
CREATE SEQUENCE
CREATE TABLE
id:int4
1
INSERT 0 1
ERROR 55000: sequence must be in same schema as table it is linked to
NOTICE 00000: drop cascades to 2 other objects
DROP SCHEMA

# Restarts, transactions, and where values are drawn.
create sequence r restart with 4 start 2;
select nextval('r');
alter sequence r rename to a.b;
begin;
create sequence in_txn;
select nextval('in_txn');
rollback;
select nextval('in_txn');
create sequence changed;
begin;
alter sequence changed increment 10;
select nextval('changed');
rollback;
select nextval('changed');
insert into i as x overriding system value values (77, 'g') returning x.id;
insert into i (id, v) overriding user value values (77, 'h') returning id > 0;
explain select nextval('r');
prepare p as select nextval('r');
execute p;
execute p;
prepare q as select $1::bigint;
execute q (nextval('r'));
select nextval('r') from generate_series(1, 3) limit 2;
select nextval('r') limit nextval('r');
select g, nextval('r') from generate_series(1, 3) g order by g desc limit 2;
select nextval('r') where (select nextval('r')) > 0;
select (select currval('r')) = currval('r');
select nextval('r'), count(*) from generate_series(1, 3) group by ();
select a.n, b.n from (select nextval('r') as n) a, (select nextval('r') as n) b;
select s.last_value > 0, t.g from r s, generate_series(1, 2) t(g);
drop sequence r;
select nextval('r');
create sequence r;
select nextval('r');
execute p;
----
CREATE SEQUENCE
nextval:int8
4
ERROR 42601: syntax error at or near "." [at 29]
BEGIN
CREATE SEQUENCE
nextval:int8
1
ROLLBACK
ERROR 42P01: relation "in_txn" does not exist [at 16]
CREATE SEQUENCE
BEGIN
ALTER SEQUENCE
nextval:int8
1
ROLLBACK
nextval:int8
2
id:int4
77
INSERT 0 1
?column?:bool
t
INSERT 0 1
Result
PREPARE
nextval:int8
5
nextval:int8
6
PREPARE
ERROR 0A000: functions of sequences in EXECUTE parameters are not supported
nextval:int8
7
8
ERROR 0A000: functions of sequences in LIMIT and OFFSET are not supported
g:int4|nextval:int8
3|9
2|10
nextval:int8
11
?column?:bool
t
nextval:int8|count:int8
12|3
n:int8|n:int8
14|13
?column?:bool|g:int4
t|1
t|2
DROP SEQUENCE
ERROR 42P01: relation "r" does not exist [at 16]
CREATE SEQUENCE
nextval:int8
1
nextval:int8
2

# A RESTART that is rolled back takes no effect, and the next one does.
create table si (id serial primary key, v int);
insert into si (v) values (1), (2), (3);
begin;
truncate si restart identity;
insert into si (v) values (9) returning id;
rollback;
insert into si (v) values (4) returning id;
begin;
alter sequence si_id_seq restart with 50;
insert into si (v) values (50) returning id;
commit;
insert into si (v) values (51) returning id;
create sequence q1;
select nextval('q1'), nextval('q1'), nextval('q1');
begin;
alter sequence q1 restart with 100;
select nextval('q1');
rollback;
select nextval('q1');
begin;
alter sequence q1 restart with 100;
select nextval('q1');
rollback;
select nextval('q1');
begin;
alter sequence q1 restart with 200;
select nextval('q1');
alter sequence q1 restart with 200;
select nextval('q1');
savepoint a;
alter sequence q1 restart with 300;
select nextval('q1');
rollback to a;
alter sequence q1 restart with 300;
select nextval('q1');
commit;
select nextval('q1');
drop table si;
drop sequence q1;
----
CREATE TABLE
INSERT 0 3
BEGIN
TRUNCATE TABLE
id:int4
1
INSERT 0 1
ROLLBACK
id:int4
4
INSERT 0 1
BEGIN
ALTER SEQUENCE
id:int4
50
INSERT 0 1
COMMIT
id:int4
51
INSERT 0 1
CREATE SEQUENCE
nextval:int8|nextval:int8|nextval:int8
1|2|3
BEGIN
ALTER SEQUENCE
nextval:int8
100
ROLLBACK
nextval:int8
4
BEGIN
ALTER SEQUENCE
nextval:int8
100
ROLLBACK
nextval:int8
5
BEGIN
ALTER SEQUENCE
nextval:int8
200
ALTER SEQUENCE
nextval:int8
200
SAVEPOINT
ALTER SEQUENCE
nextval:int8
300
ROLLBACK
ALTER SEQUENCE
nextval:int8
300
COMMIT
nextval:int8
301
DROP TABLE
DROP SEQUENCE

# Defaults and views depend on a sequence that they name by a constant, not on one that they name by a text.
create sequence numbered;
create table labelled (id int, label text default 'n' || nextval('numbered'));
insert into labelled values (1) returning label;
drop sequence numbered;
drop sequence numbered cascade;
insert into labelled values (2) returning label;
create sequence numbered;
create view counted as select nextval('numbered') as n;
select n from counted;
drop sequence numbered;
drop sequence numbered cascade;
select n from counted;
create sequence late;
alter table labelled add l int default nextval('late'::text);
select id, l from labelled order by id;
drop sequence late;
insert into labelled values (3, 'c');
drop table labelled;
create table serials (a serial, b int);
create view last_serial as select currval('serials_a_seq'::regclass) as n;
alter table serials drop column a;
alter table serials drop column a cascade;
drop table serials;
----
CREATE SEQUENCE
CREATE TABLE
label:text
n1
INSERT 0 1
ERROR 2BP01: cannot drop sequence numbered because other objects depend on it
DETAIL: default value for column label of table labelled depends on sequence numbered
HINT: Use DROP ... CASCADE to drop the dependent objects too.
NOTICE 00000: drop cascades to default value for column label of table labelled
DROP SEQUENCE
label:text
NULL
INSERT 0 1
CREATE SEQUENCE
CREATE VIEW
n:int8
1
ERROR 2BP01: cannot drop sequence numbered because other objects depend on it
DETAIL: view counted depends on sequence numbered
HINT: Use DROP ... CASCADE to drop the dependent objects too.
NOTICE 00000: drop cascades to view counted
DROP SEQUENCE
ERROR 42P01: relation "counted" does not exist [at 15]
CREATE SEQUENCE
ALTER TABLE
id:int4|l:int4
1|1
2|2
DROP SEQUENCE
ERROR 42P01: relation "late" does not exist
DROP TABLE
CREATE TABLE
CREATE VIEW
ERROR 2BP01: cannot drop column a of table serials because other objects depend on it
DETAIL: view last_serial depends on sequence serials_a_seq
HINT: Use DROP ... CASCADE to drop the dependent objects too.
NOTICE 00000: drop cascades to view last_serial
ALTER TABLE
DROP TABLE

# A row of INSERT is evaluated in the order of the table's columns.
create table lasts (a serial, b bigint default lastval(), c int);
insert into lasts default values returning *;
insert into lasts (c, b) values (5, default) returning *;
insert into lasts (b) values (lastval()) returning *;
insert into lasts values (default, default), (default, default) returning *;
drop table lasts;
----
CREATE TABLE
a:int4|b:int8|c:int4
1|1|NULL
INSERT 0 1
a:int4|b:int8|c:int4
2|2|5
INSERT 0 1
a:int4|b:int8|c:int4
3|3|NULL
INSERT 0 1
a:int4|b:int8|c:int4
4|4|NULL
5|5|NULL
INSERT 0 2
DROP TABLE

# Groups by what is drawn.
create table drawn (a int);
insert into drawn values (1), (1), (2);
create sequence keys;
select count(*) from drawn group by nextval('keys');
select nextval('keys') as key, count(*) from drawn group by 1 order by 1;
----
CREATE TABLE
INSERT 0 3
CREATE SEQUENCE
count:int8
1
1
1
key:int8|count:int8
4|1
5|1
6|1
