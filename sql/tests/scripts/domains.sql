# Domains: CREATE DOMAIN, casts, columns, ALTER DOMAIN, DROP DOMAIN.

create domain posint as int check (value > 0);
create domain small as posint not null default 7 constraint below check (value < 100);
create domain code varchar(3) constraint upper check (value = upper(value)) check (value <> 'ZZZ');
create domain tags text[] default '{}' null;
create domain posint as text;
select 5::posint, 5::small, '7'::posint + 1, 'ABCD'::code, '{a,b}'::tags, null::posint, null::tags;
select (-5)::posint;
select '-5'::posint;
select cast('x' as posint);
select 200::small;
select (-200)::small;
select null::small;
select 'abc'::code;
select 'ZZZ'::code;
select true::posint;
select case when false then (-1)::posint else 1 end;
select x::posint from (values (1), (2), (-3)) as t (x);
select 5::posint = 5, 5::posint < 6::small, greatest(1::posint, 2), coalesce(null::posint, 3), array[1::posint];
select 5::nope, 5::public.posint;
select 5::posint(3);
----
CREATE DOMAIN
CREATE DOMAIN
CREATE DOMAIN
CREATE DOMAIN
ERROR 42710: type "posint" already exists
posint:int4|small:int4|?column?:int4|code:varchar|tags:_text|posint:int4|tags:_text
5|5|8|ABC|{a,b}|NULL|NULL
ERROR 23514: value for domain posint violates check constraint "posint_check"
ERROR 23514: value for domain posint violates check constraint "posint_check"
ERROR 22P02: invalid input syntax for type integer: "x" [at 13]
ERROR 23514: value for domain small violates check constraint "below"
ERROR 23514: value for domain small violates check constraint "posint_check"
ERROR 23502: domain small does not allow null values
ERROR 23514: value for domain code violates check constraint "upper"
ERROR 23514: value for domain code violates check constraint "code_check"
posint:int4
1
case:int4
1
ERROR 23514: value for domain posint violates check constraint "posint_check"
?column?:bool|?column?:bool|greatest:int4|coalesce:int4|array:_int4
t|t|2|3|{1}
ERROR 42704: type "nope" does not exist [at 11]
ERROR 42601: type modifier is not allowed for type "posint" [at 11]

create domain bad as int check (foo > 1);
create domain bad as int check (t.a > 1);
create domain bad as int check ((select 1) > 1);
create domain bad as int check (value);
create domain bad as int check (sum(value) > 1);
create domain bad as int check (value > $1);
create domain bad as int default 'x';
create domain bad as int default true;
create domain bad as int default value;
create domain bad as int not null null;
create domain bad as int default 1 default 2;
create domain bad as int unique;
create domain bad as int primary key;
create domain bad as int references t;
create domain bad as int constraint a check (value > 1) constraint a check (value > 2);
create domain bad as int collate "C";
create domain bad as text collate "nope";
create domain bad as nope;
create domain bad as serial;
create domain bad as record;
create domain bad as anyelement;
create domain nope.bad as int;
create domain bad int check;
create domain bad int constraint a;
create domain c_text as text collate "C";
----
ERROR 42703: column "foo" does not exist
ERROR 42P01: missing FROM-clause entry for table "t"
ERROR 0A000: cannot use subquery in check constraint
ERROR 42804: argument of CHECK must be type boolean, not type integer
ERROR 42803: aggregate functions are not allowed in check constraints
ERROR 42P02: there is no parameter $1
ERROR 22P02: invalid input syntax for type integer: "x"
ERROR 42804: column "bad" is of type integer but default expression is of type boolean
HINT: You will need to rewrite or cast the expression.
ERROR 0A000: cannot use column reference in DEFAULT expression [at 34]
ERROR 42601: conflicting NULL/NOT NULL constraints
ERROR 42601: multiple default expressions
ERROR 42601: unique constraints not possible for domains
ERROR 42601: primary key constraints not possible for domains
ERROR 42601: foreign key constraints not possible for domains
ERROR 42710: constraint "a" for domain "bad" already exists
ERROR 42804: collations are not supported by type integer
ERROR 42704: collation "nope" for encoding "UTF8" does not exist
ERROR 42704: type "nope" does not exist
ERROR 42704: type "serial" does not exist
ERROR 42804: "record" is not a valid base type for a domain
ERROR 42804: "anyelement" is not a valid base type for a domain
ERROR 3F000: schema "nope" does not exist [at 15]
ERROR 42601: syntax error at or near ";" [at 28]
ERROR 42601: syntax error at or near ";" [at 35]
CREATE DOMAIN

create table t (id int primary key, a posint, b small, c code default 'ABC', d tags);
insert into t (id, a, b) values (1, 1, 2);
insert into t (id, a) values (2, 3);
insert into t (id) values (3);
insert into t values (4, -1, 2), (5, 1, 1);
insert into t values (4, 1, null);
insert into t values (4, 1, 200);
insert into t values (4, 1, -200);
insert into t values (4, 1, 1, 'abc');
insert into t values (4, 1, 1, 'ABCD');
insert into t values (4, 'x');
insert into t values (4, true);
insert into t values (4, 2.6, default, default, '{x,y}') returning *;
insert into t select 5, -1, 1;
insert into t values (1, 1, 1) on conflict (id) do update set b = -excluded.b;
insert into t values (1, 1, 1) on conflict (id) do update set b = excluded.b + 40 returning *;
update t set a = -a where id = 1;
update t set a = null, b = default where id = 1 returning *;
update t set b = null;
select * from t order by id;
select a + 1, a = b, c || '!', d[1] from t where id = 4;
select id from t where a = 3;
select id from t where a = -3;
----
CREATE TABLE
INSERT 0 1
INSERT 0 1
INSERT 0 1
ERROR 23514: value for domain posint violates check constraint "posint_check"
ERROR 23502: domain small does not allow null values
ERROR 23514: value for domain small violates check constraint "below"
ERROR 23514: value for domain small violates check constraint "posint_check"
ERROR 23514: value for domain code violates check constraint "upper"
ERROR 22001: value too long for type character varying(3)
ERROR 22P02: invalid input syntax for type integer: "x" [at 26]
ERROR 42804: column "a" is of type posint but expression is of type boolean [at 26]
HINT: You will need to rewrite or cast the expression.
id:int4|a:int4|b:int4|c:varchar|d:_text
4|3|7|ABC|{x,y}
INSERT 0 1
ERROR 23514: value for domain posint violates check constraint "posint_check"
ERROR 23514: value for domain small violates check constraint "posint_check"
id:int4|a:int4|b:int4|c:varchar|d:_text
1|1|41|ABC|{}
INSERT 0 1
ERROR 23514: value for domain posint violates check constraint "posint_check"
id:int4|a:int4|b:int4|c:varchar|d:_text
1|NULL|7|ABC|{}
UPDATE 1
ERROR 23502: domain small does not allow null values
id:int4|a:int4|b:int4|c:varchar|d:_text
1|NULL|7|ABC|{}
2|3|7|ABC|{}
3|NULL|7|ABC|{}
4|3|7|ABC|{x,y}
?column?:int4|?column?:bool|?column?:text|d:text
4|f|ABC!|x
id:int4
2
4
id:int4

\params -4
insert into t values (6, $1, 1);
\params 4
insert into t values (6, $1, 1) returning a;
\params 6 6
select id from t where a = $1::posint - 2 and id = $2;
\params -6
select $1::posint;
prepare p (posint, small) as select $1, $2;
execute p (1, 2);
----
ERROR 23514: value for domain posint violates check constraint "posint_check"
params int4
a:int4
4
INSERT 0 1
params int4 int4
id:int4
6
ERROR 23514: value for domain posint violates check constraint "posint_check"
PREPARE
?column?:int4|?column?:int4
1|2

alter domain posint add check (value < 4);
alter domain posint add constraint lower check (value < 5);
alter domain posint add constraint lower check (value < 50);
alter domain posint add constraint lower check (value < 60);
insert into t values (7, 55, 1);
insert into t values (7, 1, 55);
alter domain posint rename constraint lower to limited;
alter domain posint rename constraint nope to other;
alter domain posint rename constraint limited to posint_check;
alter domain posint validate constraint limited;
alter domain posint validate constraint nope;
alter domain posint drop constraint nope;
alter domain posint drop constraint if exists nope;
alter domain posint drop constraint limited;
insert into t values (7, 55, 55);
alter domain posint set not null;
alter domain posint set default 9;
insert into t (id) values (8) returning *;
alter domain posint drop default;
insert into t (id) values (9) returning *;
alter domain posint set not null;
delete from t where a is null;
alter domain posint set not null;
insert into t (id) values (9);
alter domain posint drop not null;
insert into t (id) values (9) returning *;
alter domain posint set default 'x';
alter domain posint add check (nope > 1);
alter domain posint add unique (a);
alter domain posint owner to postgres;
alter domain nope set not null;
alter domain t set not null;
alter domain int4 set not null;
alter domain posint rename to small;
alter domain posint rename to positive;
select 1::posint;
select (-1)::positive;
alter type positive rename to posint;
alter type posint add value 'x';
----
ERROR 23514: column "b" of table "t" contains values that violate the new constraint
ERROR 23514: column "b" of table "t" contains values that violate the new constraint
ALTER DOMAIN
ERROR 42710: constraint "lower" for domain "posint" already exists
ERROR 23514: value for domain posint violates check constraint "lower"
ERROR 23514: value for domain small violates check constraint "lower"
ALTER DOMAIN
ERROR 42704: constraint "nope" for domain posint does not exist
ERROR 42710: constraint "posint_check" for domain posint already exists
ALTER DOMAIN
ERROR 42704: constraint "nope" of domain "posint" does not exist
ERROR 42704: constraint "nope" of domain "posint" does not exist
NOTICE 00000: constraint "nope" of domain "posint" does not exist, skipping
ALTER DOMAIN
ALTER DOMAIN
INSERT 0 1
ERROR 23502: column "a" of table "t" contains null values
ALTER DOMAIN
id:int4|a:int4|b:int4|c:varchar|d:_text
8|9|7|ABC|{}
INSERT 0 1
ALTER DOMAIN
id:int4|a:int4|b:int4|c:varchar|d:_text
9|NULL|7|ABC|{}
INSERT 0 1
ERROR 23502: column "a" of table "t" contains null values
DELETE 3
ALTER DOMAIN
ERROR 23502: domain posint does not allow null values
ALTER DOMAIN
id:int4|a:int4|b:int4|c:varchar|d:_text
9|NULL|7|ABC|{}
INSERT 0 1
ERROR 22P02: invalid input syntax for type integer: "x"
ERROR 42703: column "nope" does not exist
ERROR 42601: unique constraints not possible for domains
ALTER DOMAIN
ERROR 42704: type "nope" does not exist
ERROR 42809: t is not a domain
ERROR 42809: integer is not a domain
ERROR 42710: type "small" already exists
ALTER DOMAIN
ERROR 42704: type "posint" does not exist [at 11]
ERROR 23514: value for domain positive violates check constraint "posint_check"
ALTER TYPE
ERROR 42809: posint is not an enum

# Rows of other tables and of the same transaction are checked too.
create table u (x posint);
begin;
insert into u values (10);
alter domain posint add constraint tiny check (value < 10);
rollback;
begin;
insert into u values (5);
alter domain posint add constraint tiny check (value < 60);
insert into u values (70);
rollback;
insert into u values (70);
select * from u;
drop table u;
----
CREATE TABLE
BEGIN
INSERT 0 1
ERROR 23514: column "a" of table "t" contains values that violate the new constraint
ROLLBACK
BEGIN
INSERT 0 1
ALTER DOMAIN
ERROR 23514: value for domain posint violates check constraint "tiny"
ROLLBACK
INSERT 0 1
x:int4
70
DROP TABLE

create table k (p posint primary key, q small unique, check (p > 1), g posint generated always as (p - 5) stored);
insert into k values (6, 1), (7, 2);
insert into k values (5, 3);
insert into k values (0, 3);
create index on k (g);
select * from k where g = 1::posint;
explain (costs off) select * from k where p = 6::posint;
explain (costs off) select * from k where p + 1 = 7::posint;
create table child (p posint references k on delete set null on update cascade, q small references k (q) on delete set default);
insert into child values (6, 1);
delete from k where p = 6;
update child set q = 2, p = 7;
update k set p = 8 where p = 7;
select * from child;
alter domain small drop not null;
alter domain small drop default;
delete from k;
select * from child;
drop table child, k;
alter domain small set default 7;
----
CREATE TABLE
INSERT 0 2
ERROR 23514: value for domain posint violates check constraint "posint_check"
ERROR 23514: value for domain posint violates check constraint "posint_check"
CREATE INDEX
p:int4|q:int4|g:int4
6|1|1
Point Get on k
  Key: (p = (6)::posint)
Full Scan on k
  Filter: ((p + 1) = (7)::posint)
CREATE TABLE
INSERT 0 1
ERROR 23503: insert or update on table "child" violates foreign key constraint "child_q_fkey"
DETAIL: Key (q)=(7) is not present in table "k".
UPDATE 1
UPDATE 1
p:int4|q:int4
8|2
ALTER DOMAIN
ALTER DOMAIN
DELETE 2
p:int4|q:int4
NULL|NULL
DROP TABLE
ALTER DOMAIN

alter table t add column e small;
alter table t add column f small default 200;
alter table t add column f posint default null;
alter table t alter column f type small;
update t set f = 200 where id = 1;
create table made as select id, a, a + 1 as b from t where id < 3;
insert into made values (1, -1, 1);
insert into made values (1, 1, -1) returning *;
alter table t alter column id type posint;
alter table t alter column id type small using id + 100;
alter table t alter column id type code;
alter table t alter column e type int;
alter table t alter column e drop default;
alter table t add column g posint check (g < 5);
insert into t (id, g) values (20, 7);
alter table t drop column g;
create table copied (like t including all);
create table ident (a posint generated always as identity);
create sequence s as posint;
create view v as select a, 5::posint as five, a::small as s from t where a > 0::posint;
select * from v order by a limit 1;
----
ALTER TABLE
ERROR 23514: value for domain small violates check constraint "below"
ALTER TABLE
ALTER TABLE
UPDATE 0
ERROR 23514: value for domain posint violates check constraint "posint_check"
id:int4|a:int4|b:int4
1|1|-1
INSERT 0 1
ALTER TABLE
ERROR 23514: value for domain small violates check constraint "below"
ALTER TABLE
ALTER TABLE
ALTER TABLE
ALTER TABLE
ERROR 23514: new row for relation "t" violates check constraint "t_g_check"
DETAIL: Failing row contains (20, null, 7, ABC, {}, null, null, 7).
ALTER TABLE
CREATE TABLE
ERROR 22023: identity column type must be smallint, integer, or bigint
ERROR 22023: sequence type must be smallint, integer, or bigint
CREATE VIEW
ERROR 23514: value for domain posint violates check constraint "posint_check"

copy t (id, a) to stdout;
select domain_name, data_type, udt_name, numeric_precision, character_maximum_length, domain_default from information_schema.domains where domain_schema = 'public' order by 1;
select domain_name, constraint_name from information_schema.domain_constraints where domain_schema = 'public' order by 1, 2;
select constraint_name, check_clause from information_schema.check_constraints where constraint_name in ('below', 'upper', 'code_check');
select domain_name, table_name, column_name from information_schema.column_domain_usage where table_name in ('t', 'made') order by 2, 3;
select udt_name, domain_name from information_schema.domain_udt_usage where domain_schema = 'public' order by 2;
select column_name, data_type, udt_name, domain_schema, domain_name, character_maximum_length, numeric_precision from information_schema.columns where table_name = 't' order by ordinal_position;
select column_name, is_nullable from information_schema.columns where table_name = 't' order by ordinal_position;
select typname, typtype, typcategory, typbasetype::regtype, typtypmod, typnotnull, typdefault, typelem::regtype, typarray::regtype, typinput, typoutput, typreceive, typsend, typcollation from pg_type where typnamespace = 'public'::regnamespace and typtype = 'd' order by 1;
select typname, typtype, typcategory, typelem::regtype, typinput from pg_type where typname in ('_posint', '_code') order by 1;
select conname, contype, contypid::regtype, conrelid, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) from pg_constraint where contypid <> 0 and connamespace = 'public'::regnamespace order by 1;
select attname, atttypid::regtype, format_type(atttypid, atttypmod), atttypmod from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum;
select 'posint'::regtype, 'public.code'::regtype, format_type('posint'::regtype, null), to_regtype('posint') = 'posint'::regtype;
SELECT n.nspname as "Schema", t.typname as "Name", pg_catalog.format_type(t.typbasetype, t.typtypmod) as "Type", (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type bt WHERE c.oid = t.typcollation AND bt.oid = t.typbasetype AND t.typcollation <> bt.typcollation) as "Collation", CASE WHEN t.typnotnull THEN 'not null' END as "Nullable", t.typdefault as "Default", pg_catalog.array_to_string(ARRAY(SELECT pg_catalog.pg_get_constraintdef(r.oid, true) FROM pg_catalog.pg_constraint r WHERE t.oid = r.contypid), ' ') as "Check" FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.typtype = 'd' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_type_is_visible(t.oid) ORDER BY 1, 2;
----
COPY 6
domain_name:name|data_type:varchar|udt_name:name|numeric_precision:int4|character_maximum_length:int4|domain_default:varchar
c_text|text|text|NULL|NULL|NULL
code|character varying|varchar|NULL|3|NULL
posint|integer|int4|32|NULL|NULL
small|USER-DEFINED|posint|NULL|NULL|7
tags|text[]|_text|NULL|NULL|'{}'::text[]
domain_name:name|constraint_name:name
code|code_check
code|upper
posint|posint_check
small|below
constraint_name:name|check_clause:varchar
below|((VALUE < 100))
code_check|((VALUE <> 'ZZZ'))
upper|((VALUE = upper(VALUE)))
domain_name:name|table_name:name|column_name:name
posint|made|a
posint|t|a
small|t|b
code|t|c
tags|t|d
small|t|f
code|t|id
udt_name:name|domain_name:name
text|c_text
varchar|code
int4|posint
posint|small
_text|tags
column_name:name|data_type:varchar|udt_name:name|domain_schema:name|domain_name:name|character_maximum_length:int4|numeric_precision:int4
id|character varying|varchar|public|code|3|NULL
a|integer|int4|public|posint|NULL|32
b|USER-DEFINED|posint|public|small|NULL|NULL
c|character varying|varchar|public|code|3|NULL
d|ARRAY|_text|public|tags|NULL|NULL
e|integer|int4|NULL|NULL|NULL|32
f|USER-DEFINED|posint|public|small|NULL|NULL
column_name:name|is_nullable:varchar
id|NO
a|YES
b|YES
c|YES
d|YES
e|YES
f|YES
typname:name|typtype:char|typcategory:char|typbasetype:regtype|typtypmod:int4|typnotnull:bool|typdefault:text|typelem:regtype|typarray:regtype|typinput:regproc|typoutput:regproc|typreceive:regproc|typsend:regproc|typcollation:oid
c_text|d|S|text|-1|f|NULL|-|c_text[]|domain_in|textout|domain_recv|textsend|100
code|d|S|character varying|7|f|NULL|-|code[]|domain_in|varcharout|domain_recv|varcharsend|100
posint|d|N|integer|-1|f|NULL|-|posint[]|domain_in|int4out|domain_recv|int4send|0
small|d|N|posint|-1|f|7|-|small[]|domain_in|int4out|domain_recv|int4send|0
tags|d|A|text[]|-1|f|'{}'::text[]|-|tags[]|domain_in|array_out|domain_recv|array_send|100
typname:name|typtype:char|typcategory:char|typelem:regtype|typinput:regproc
_code|b|A|code|array_in
_posint|b|A|posint|array_in
conname:name|contype:char|contypid:regtype|conrelid:oid|pg_get_constraintdef:text|pg_get_constraintdef:text
below|c|small|0|CHECK ((VALUE < 100))|CHECK (VALUE < 100)
code_check|c|code|0|CHECK ((VALUE <> 'ZZZ'))|CHECK (VALUE <> 'ZZZ')
posint_check|c|posint|0|CHECK ((VALUE > 0))|CHECK (VALUE > 0)
upper|c|code|0|CHECK ((VALUE = upper(VALUE)))|CHECK (VALUE = upper(VALUE))
attname:name|atttypid:regtype|format_type:text|atttypmod:int4
id|code|code|-1
a|posint|posint|-1
b|small|small|-1
c|code|code|-1
d|tags|tags|-1
e|integer|integer|-1
f|small|small|-1
regtype:regtype|regtype:regtype|format_type:text|?column?:bool
posint|code|posint|t
Schema:name|Name:name|Type:text|Collation:name|Nullable:text|Default:text|Check:text
public|c_text|text|NULL|NULL|NULL|
public|code|character varying(3)|NULL|NULL|NULL|CHECK (VALUE <> 'ZZZ') CHECK (VALUE = upper(VALUE))
public|posint|integer|NULL|NULL|NULL|CHECK (VALUE > 0)
public|small|posint|NULL|NULL|7|CHECK (VALUE < 100)
public|tags|text[]|NULL|NULL|'{}'::text[]|

drop domain posint;
drop domain nope;
drop domain if exists nope;
drop domain int4;
drop type tags;
drop view v;
create table named (a int default 5::code::text::posint, b text check (b::code is null));
drop domain code;
drop domain code cascade;
drop domain tags cascade;
drop table named;
drop domain posint, small cascade;
select * from t order by 1 limit 1;
create domain nn as int;
drop type nn;
select 1::nn;
----
ERROR 2BP01: cannot drop type posint because other objects depend on it
DETAIL: type small depends on type posint
column f of table t depends on type small
column b of table t depends on type small
column f of table copied depends on type small
column b of table copied depends on type small
view v depends on type small
column a of table t depends on type posint
column a of table made depends on type posint
column a of table copied depends on type posint
HINT: Use DROP ... CASCADE to drop the dependent objects too.
ERROR 42704: type "nope" does not exist
NOTICE 00000: type "nope" does not exist, skipping
DROP DOMAIN
ERROR 42809: "int4" is not a domain
ERROR 2BP01: cannot drop type tags because other objects depend on it
DETAIL: column d of table t depends on type tags
column d of table copied depends on type tags
HINT: Use DROP ... CASCADE to drop the dependent objects too.
DROP VIEW
CREATE TABLE
ERROR 2BP01: cannot drop type code because other objects depend on it
DETAIL: column c of table t depends on type code
column id of table t depends on type code
column c of table copied depends on type code
column id of table copied depends on type code
default value for column a of table named depends on type code
HINT: Use DROP ... CASCADE to drop the dependent objects too.
ERROR 0A000: an expression of table named names what is dropped: drop it first
NOTICE 00000: drop cascades to 2 other objects
DROP DOMAIN
DROP TABLE
NOTICE 00000: drop cascades to 7 other objects
DROP DOMAIN
id:varchar|c:varchar|e:int4
2|ABC|7
CREATE DOMAIN
DROP TYPE
ERROR 42704: type "nn" does not exist [at 11]

# In other schemas, and temporary ones.
create schema other;
create domain other.d as int check (value > 0);
create domain d as other.d check (value < 10);
select 0::d;
select 0::other.d;
create table other.t (a other.d, b d);
insert into other.t values (1, 10);
insert into other.t values (0, 1);
select format_type('other.d'::regtype, null);
set search_path = other;
select 10::d;
select 10::public.d;
insert into t values (1, 20);
reset search_path;
drop schema other;
drop schema other cascade;
select 0::d;
create domain pg_temp.x as int check (value > 0);
select 0::x;
create temp table tt (a x);
----
CREATE SCHEMA
CREATE DOMAIN
CREATE DOMAIN
ERROR 23514: value for domain d violates check constraint "d_check"
ERROR 23514: value for domain other.d violates check constraint "d_check"
CREATE TABLE
ERROR 23514: value for domain d violates check constraint "d_check"
ERROR 23514: value for domain other.d violates check constraint "d_check"
format_type:text
other.d
SET
d:int4
10
ERROR 23514: value for domain public.d violates check constraint "d_check"
ERROR 23514: value for domain public.d violates check constraint "d_check"
RESET
ERROR 2BP01: cannot drop schema other because other objects depend on it
DETAIL: type other.d depends on schema other
type d depends on type other.d
table other.t depends on schema other
HINT: Use DROP ... CASCADE to drop the dependent objects too.
NOTICE 00000: drop cascades to 3 other objects
DROP SCHEMA
ERROR 42704: type "d" does not exist [at 11]
CREATE DOMAIN
ERROR 23514: value for domain x violates check constraint "x_check"
CREATE TABLE

# A transaction's own domains.
begin;
create domain own as int check (value > 0);
create table owned (a own);
insert into owned values (1);
savepoint p;
insert into owned values (0);
rollback to p;
alter domain own add check (value < 5);
insert into owned values (7);
rollback;
select 1::own;
----
BEGIN
CREATE DOMAIN
CREATE TABLE
INSERT 0 1
SAVEPOINT
ERROR 23514: value for domain own violates check constraint "own_check"
ROLLBACK
ALTER DOMAIN
ERROR 23514: value for domain own violates check constraint "own_check1"
ROLLBACK
ERROR 42704: type "own" does not exist [at 11]

# What PostgreSQL has and Cortado has not.
create domain plain as int;
create domain bad as int check (value::plain > 1);
create domain bad as int check (pg_backend_pid() > value and pg_try_advisory_lock(1));
create sequence numbers;
create domain bad as int default nextval('numbers');
select 1::plain[];
create table bad (a plain[]);
alter domain plain add check (value > 2) not valid;
create view reads as select 1::plain as a;
alter domain plain rename to other;
alter type plain rename to other;
select a from reads;
----
CREATE DOMAIN
ERROR 0A000: a check of a domain with a cast to a domain is not supported yet
ERROR 0A000: a check of a domain with this function is not supported yet
CREATE SEQUENCE
ERROR 0A000: a domain whose default draws from a sequence is not supported yet
ERROR 0A000: arrays of domains are not supported yet [at 11]
ERROR 0A000: arrays of domains are not supported yet [at 21]
ERROR 0A000: NOT VALID is not supported yet [at 14]
CREATE VIEW
ALTER DOMAIN
ERROR 42704: type "plain" does not exist
a:int4
1
