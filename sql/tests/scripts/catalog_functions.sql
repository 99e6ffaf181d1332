# The functions of the system catalog, and names of objects.
create table acc (id int primary key, name varchar(20) not null default 'x');
----
CREATE TABLE

select format_type(23, null), format_type(1043, 9), format_type(1042, -1), format_type(1042, null), format_type(1014, -1), format_type(0, null), format_type(1, null), format_type(13226, null), format_type(13225, null), format_type(null, 3);
----
format_type:text|format_type:text|format_type:text|format_type:text|format_type:text|format_type:text|format_type:text|format_type:text|format_type:text|format_type:text
integer|character varying(5)|bpchar|character|bpchar[]|-|???|information_schema.sql_identifier|information_schema.sql_identifier[]|NULL

select 'pg_class'::regclass::oid, 'pg_catalog.pg_type'::regclass, 'information_schema.tables'::regclass, 'ACC'::regclass, '"acc"'::regclass, 'public.acc_pkey'::regclass;
----
oid:oid|regclass:regclass|regclass:regclass|regclass:regclass|regclass:regclass|regclass:regclass
1259|pg_type|information_schema.tables|acc|acc|acc_pkey

select 1259::regclass, 99999::regclass, 0::regclass, '-'::regclass, '1259'::regclass;
----
regclass:regclass|regclass:regclass|regclass:regclass|regclass:regclass|regclass:regclass
pg_class|99999|-|-|pg_class

select 'nosuch'::regclass;
----
ERROR 42P01: relation "nosuch" does not exist [at 8]

select 'a.b.c'::regclass;
----
ERROR 0A000: cross-database references are not implemented: "a.b.c" [at 8]

select 'a b'::regclass;
----
ERROR 42602: invalid name syntax [at 8]

select 'now'::regproc, 'array_in'::regproc, 'now'::regproc::oid, 'count'::regproc;
----
ERROR 42725: more than one function named "count" [at 66]

select 'now()'::regprocedure, 'format_type(oid, integer)'::regprocedure::oid, 'pg_catalog.array_in(cstring, oid, integer)'::regprocedure;
----
regprocedure:regprocedure|oid:oid|regprocedure:regprocedure
now()|1081|array_in(cstring,oid,integer)

select 'nosuch()'::regprocedure;
----
ERROR 42883: function "nosuch()" does not exist [at 8]

select 'nosuch'::regproc;
----
ERROR 42883: function "nosuch" does not exist [at 8]

select '=(int4,int4)'::regoperator::oid, 96::regoperator, 96::regoper, '-(NONE,int4)'::regoperator::oid;
----
oid:oid|regoperator:regoperator|regoper:regoper|oid:oid
96|=(integer,integer)|pg_catalog.=|558

select '='::regoper;
----
ERROR 42725: more than one operator named = [at 8]

select 'int4'::regtype, 'timestamp with time zone'::regtype::oid, 'text[]'::regtype, 'information_schema.sql_identifier'::regtype::oid;
----
regtype:regtype|oid:oid|regtype:regtype|oid:oid
integer|1184|text[]|13226

select 'nosuch'::regtype;
----
ERROR 42704: type "nosuch" does not exist [at 8]

select 'public'::regnamespace::oid, 11::regnamespace, 13207::regnamespace, 'postgres'::regrole::oid, 10::regrole, '"default"'::regcollation::oid, 950::regcollation, 100::regcollation;
----
oid:oid|regnamespace:regnamespace|regnamespace:regnamespace|oid:oid|regrole:regrole|oid:oid|regcollation:regcollation|regcollation:regcollation
2200|pg_catalog|information_schema|10|postgres|100|"C"|"default"

select 'nosuch'::regnamespace;
----
ERROR 3F000: schema "nosuch" does not exist [at 8]

select 'nosuch'::regrole;
----
ERROR 42704: role "nosuch" does not exist [at 8]

select 'nosuch'::regcollation;
----
ERROR 42704: collation "nosuch" for encoding "UTF8" does not exist [at 8]

select to_regclass('acc'), to_regclass('nosuch'), to_regtype('int4'), to_regtype('nosuch'), to_regproc('now'), to_regproc('count'), to_regprocedure('now()'), to_regnamespace('public'), to_regrole('x'), to_regcollation('C'), to_regoper('='), to_regoperator('=(int4,int4)');
----
to_regclass:regclass|to_regclass:regclass|to_regtype:regtype|to_regtype:regtype|to_regproc:regproc|to_regproc:regproc|to_regprocedure:regprocedure|to_regnamespace:regnamespace|to_regrole:regrole|to_regcollation:regcollation|to_regoper:regoper|to_regoperator:regoperator
acc|NULL|integer|NULL|now|NULL|now()|public|NULL|NULL|NULL|=(integer,integer)

select to_regclass('a b');
----
ERROR 42602: invalid name syntax

select int4in('1');
----
ERROR 0A000: a call of function int4in is not supported yet [at 8]

select pg_get_userbyid(10), pg_get_userbyid(77), pg_table_is_visible('acc'::regclass), pg_table_is_visible(1259), pg_table_is_visible(13425), pg_table_is_visible(5), pg_type_is_visible(23), pg_type_is_visible(13226), pg_function_is_visible(1299), pg_operator_is_visible(96), pg_collation_is_visible(950), pg_opclass_is_visible(1978), pg_ts_config_is_visible(1);
----
pg_get_userbyid:name|pg_get_userbyid:name|pg_table_is_visible:bool|pg_table_is_visible:bool|pg_table_is_visible:bool|pg_table_is_visible:bool|pg_type_is_visible:bool|pg_type_is_visible:bool|pg_function_is_visible:bool|pg_operator_is_visible:bool|pg_collation_is_visible:bool|pg_opclass_is_visible:bool|pg_ts_config_is_visible:bool
postgres|unknown (OID=77)|t|t|f|NULL|t|f|t|t|t|t|NULL

select current_schemas(true), current_schemas(false), pg_encoding_to_char(6), pg_encoding_to_char(99), pg_char_to_encoding('utf-8'), pg_char_to_encoding('foo'), pg_client_encoding(), getdatabaseencoding();
----
current_schemas:_name|current_schemas:_name|pg_encoding_to_char:name|pg_encoding_to_char:name|pg_char_to_encoding:int4|pg_char_to_encoding:int4|pg_client_encoding:name|getdatabaseencoding:name
{pg_catalog,public}|{public}|UTF8||6|-1|UTF8|UTF8

select pg_get_function_arguments(oid), pg_get_function_identity_arguments(oid), pg_get_function_result(oid) from pg_proc where oid in (1081, 3464, 2289, 3425, 1299, 2078) order by oid;
----
pg_get_function_arguments:text|pg_get_function_identity_arguments:text|pg_get_function_result:text
oid, integer|oid, integer|text
||timestamp with time zone
text, text, boolean|text, text, boolean|text
options_array text[], OUT option_name text, OUT option_value text|options_array text[], OUT option_name text, OUT option_value text|SETOF record
partitionid regclass, OUT relid regclass|partitionid regclass, OUT relid regclass|SETOF regclass
years integer DEFAULT 0, months integer DEFAULT 0, weeks integer DEFAULT 0, days integer DEFAULT 0, hours integer DEFAULT 0, mins integer DEFAULT 0, secs double precision DEFAULT 0.0|years integer, months integer, weeks integer, days integer, hours integer, mins integer, secs double precision|interval

select pg_get_functiondef('now'::regproc);
----
ERROR 0A000: the definition of function now is not supported yet

select pg_get_functiondef('count("any")'::regprocedure);
----
ERROR 42809: "count" is an aggregate function

select pg_get_indexdef(0), pg_get_constraintdef(7), pg_get_viewdef('pg_tables'::regclass), pg_get_viewdef('pg_tables'::regclass, true), pg_get_partkeydef('acc'::regclass), pg_get_statisticsobjdef_columns(1), pg_get_triggerdef(1), pg_get_ruledef(1), pg_partition_root('acc');
----
pg_get_indexdef:text|pg_get_constraintdef:text|pg_get_viewdef:text|pg_get_viewdef:text|pg_get_partkeydef:text|pg_get_statisticsobjdef_columns:text|pg_get_triggerdef:text|pg_get_ruledef:text|pg_partition_root:regclass
NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL

select pg_get_serial_sequence('acc', 'id');
----
pg_get_serial_sequence:text
NULL

select pg_get_serial_sequence('acc', 'nosuch');
----
ERROR 42703: column "nosuch" of relation "acc" does not exist

select pg_get_serial_sequence('nosuch', 'id');
----
ERROR 42P01: relation "nosuch" does not exist

select obj_description('acc'::regclass, 'pg_class'), obj_description(1), col_description('acc'::regclass, 1), shobj_description(10, 'pg_authid');
----
obj_description:text|obj_description:text|col_description:text|shobj_description:text
NULL|NULL|NULL|NULL

select pg_relation_size('acc'), pg_relation_size('acc', 'fsm'), pg_table_size('acc'), pg_total_relation_size('acc'), pg_indexes_size('acc'), pg_database_size('postgres'), pg_relation_size(5), pg_size_pretty(pg_relation_size('acc')), pg_size_pretty(123456789::bigint);
----
pg_relation_size:int8|pg_relation_size:int8|pg_table_size:int8|pg_total_relation_size:int8|pg_indexes_size:int8|pg_database_size:int8|pg_relation_size:int8|pg_size_pretty:text|pg_size_pretty:text
0|0|0|0|0|0|NULL|0 bytes|118 MB

select pg_relation_size('acc', 'foo');
----
ERROR 22023: invalid fork name
HINT: Valid fork names are "main", "fsm", "vm", and "init".

select pg_database_size('nosuch');
----
ERROR 3D000: database "nosuch" does not exist

select has_table_privilege('acc', 'select'), has_table_privilege('ann', 'acc', 'INSERT, update with grant option'), has_table_privilege('acc'::regclass, 'select'), has_table_privilege(5::oid, 'select'), has_column_privilege('acc', 'name', 'select'), has_column_privilege('acc', 2::int2, 'select'), has_schema_privilege('public', 'usage'), has_database_privilege('postgres', 'connect'), has_function_privilege('now()', 'execute'), has_type_privilege('int4', 'usage'), has_any_column_privilege('pg_class', 'select'), pg_has_role('postgres', 'member'), has_schema_privilege('postgres', 'public', 'create');
----
has_table_privilege:bool|has_table_privilege:bool|has_table_privilege:bool|has_table_privilege:bool|has_column_privilege:bool|has_column_privilege:bool|has_schema_privilege:bool|has_database_privilege:bool|has_function_privilege:bool|has_type_privilege:bool|has_any_column_privilege:bool|pg_has_role:bool|has_schema_privilege:bool
t|t|t|NULL|t|t|t|t|t|t|t|t|t

select has_table_privilege('acc', 'foo');
----
ERROR 22023: unrecognized privilege type: "foo"

select has_table_privilege('nobody', 'acc', 'select');
----
ERROR 42704: role "nobody" does not exist

select has_table_privilege('nosuch', 'select');
----
ERROR 42P01: relation "nosuch" does not exist

select has_schema_privilege('nosuch', 'usage');
----
ERROR 3F000: schema "nosuch" does not exist

select has_column_privilege('acc', 'nosuch', 'select');
----
ERROR 42703: column "nosuch" of relation "acc" does not exist

select has_database_privilege('nosuch', 'connect');
----
ERROR 3D000: database "nosuch" does not exist

select pg_has_role('postgres', 'foo');
----
ERROR 22023: unrecognized privilege type: "foo"

select pg_is_in_recovery(), pg_postmaster_start_time() = now(), row_security_active('acc'), pg_my_temp_schema(), pg_is_other_temp_schema(1), pg_relation_is_publishable('acc'), pg_relation_is_publishable('pg_class'), pg_get_replica_identity_index('acc'), inet_client_port() > 0, pg_safe_snapshot_blocking_pids(1);
----
pg_is_in_recovery:bool|?column?:bool|row_security_active:bool|pg_my_temp_schema:oid|pg_is_other_temp_schema:bool|pg_relation_is_publishable:bool|pg_relation_is_publishable:bool|pg_get_replica_identity_index:regclass|?column?:bool|pg_safe_snapshot_blocking_pids:_int4
f|t|f|0|f|t|f|acc_pkey|t|{}

select row_security_active('nosuch');
----
ERROR 42P01: relation "nosuch" does not exist

# Nobody has such a process id: there is no node of that number.
select pg_blocking_pids(1), pg_cancel_backend(null), pg_terminate_backend(null), pg_blocking_pids(null);
select pg_cancel_backend(-5), pg_terminate_backend(pid => 7, timeout => 10);
select pg_terminate_backend(7, -1);
select pg_cancel_backend(pg_backend_pid());
select n, pg_cancel_backend(n) from (values (7), (8)) v(n) where n > 7;
select 1 limit pg_cancel_backend(7)::int;
----
pg_blocking_pids:_int4|pg_cancel_backend:bool|pg_terminate_backend:bool|pg_blocking_pids:_int4
{}|NULL|NULL|NULL
WARNING 01000: PID -5 is not a PostgreSQL backend process
WARNING 01000: PID 7 is not a PostgreSQL backend process
pg_cancel_backend:bool|pg_terminate_backend:bool
f|f
ERROR 22003: "timeout" must not be negative
ERROR 57014: canceling statement due to user request
WARNING 01000: PID 8 is not a PostgreSQL backend process
n:int4|pg_cancel_backend:bool
8|f
ERROR 0A000: functions of advisory locks and of sessions in LIMIT and OFFSET are not supported

begin;
select txid_current() > 0, pg_current_xact_id() is not null, txid_current() = txid_current_if_assigned();
rollback;
select txid_current() > 0;
----
BEGIN
?column?:bool|?column?:bool|?column?:bool
t|t|t
ROLLBACK
?column?:bool
t

select pg_get_expr('1 + 1', 0);
----
pg_get_expr:text
1 + 1

# Privileges of new objects, types of a vector, hashes.
select acldefault('n', 10), acldefault('c', 10), acldefault('T', 10), acldefault('r', 6171), acldefault('d', null);
select acldefault('x', 10);
select oidvectortypes(proargtypes) from pg_proc where oid = 1081;
select oidvectortypes('23 25 1007'), oidvectortypes('');
select hashtext('abc'), hashtext(''), hashtext(null), hashtextextended('abc', 5), hashtextextended('the quick brown fox jumps', -7);
----
acldefault:_aclitem|acldefault:_aclitem|acldefault:_aclitem|acldefault:_aclitem|acldefault:_aclitem
{postgres=UC/postgres}|{}|{=U/postgres,postgres=U/postgres}|{pg_database_owner=arwdDxt/pg_database_owner}|NULL
ERROR XX000: unrecognized objtype abbreviation: x
oidvectortypes:text
oid, integer
oidvectortypes:text|oidvectortypes:text
integer, text, integer[]|
hashtext:int4|hashtext:int4|hashtext:int4|hashtextextended:int8|hashtextextended:int8
-785388649|-1477818771|NULL|-8227931761584822072|9054532035345318999

# Row types of tables and views.
create table rowed (id int primary key);
create schema rowed_schema;
create view rowed_schema.viewed as select id from rowed;
select c.relname, c.relkind, c.reltype > 0 as has_type, t.typname, t.typtype, t.typcategory, t.typlen, t.typrelid = c.oid as agrees, t.typinput::text, t.typalign, t.typstorage, t.typarray, format_type(t.oid, -1), pg_type_is_visible(t.oid) from pg_class c left join pg_type t on t.oid = c.reltype where relname in ('rowed', 'viewed', 'rowed_pkey', 'pg_class') order by 1;
select count(*) from pg_type t where t.typtype = 'c' and t.typname in ('rowed', 'viewed') and (t.typrelid = 0 or (select c.relkind = 'c' from pg_class c where c.oid = t.typrelid));
drop view rowed_schema.viewed;
drop schema rowed_schema;
drop table rowed;
----
CREATE TABLE
CREATE SCHEMA
CREATE VIEW
relname:name|relkind:char|has_type:bool|typname:name|typtype:char|typcategory:char|typlen:int2|agrees:bool|typinput:text|typalign:char|typstorage:char|typarray:oid|format_type:text|pg_type_is_visible:bool
pg_class|r|f|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL
rowed|r|t|rowed|c|C|-1|t|record_in|d|x|0|rowed|t
rowed_pkey|i|f|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL
viewed|v|t|viewed|c|C|-1|t|record_in|d|x|0|rowed_schema.viewed|f
count:int8
0
DROP VIEW
DROP SCHEMA
DROP TABLE

# Generated columns, predicates and defaults of enums in PostgreSQL's form.
create type mood as enum ('ok', 'sad');
create table mt (m mood default 'ok', ms mood[] default '{ok}', e int generated always as ((id2 + 1)*2) stored, id2 int, t text, b bool, bb bool generated always as (id2 > 0) stored, l bigint generated always as (id2+1) stored, i int generated always as (id2) stored);
select adnum, pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'mt'::regclass order by 1;
create index i1 on mt (id2) where id2>0;
create index i2 on mt (id2) where b;
create index i3 on mt (id2) where id2 >0 and b;
create index i4 on mt (id2) where id2 is not null;
create index i6 on mt (id2) where not b;
create index i9 on mt (id2) where t like 'a%';
create index i10 on mt (id2) where starts_with(t,'a');
select pg_get_indexdef(indexrelid), pg_get_expr(indpred, indrelid), pg_get_expr(indpred, indrelid, true) from pg_index where indrelid = 'mt'::regclass order by indexrelid;
alter type mood rename to temper;
select adnum, pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'mt'::regclass and adnum < 3 order by 1;
insert into mt (id2) values (5) returning *;
drop table mt;
drop type temper;
----
CREATE TYPE
CREATE TABLE
adnum:int2|pg_get_expr:text
1|'ok'::mood
2|'{ok}'::mood[]
3|((id2 + 1) * 2)
7|(id2 > 0)
8|(id2 + 1)
9|id2
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE INDEX
pg_get_indexdef:text|pg_get_expr:text|pg_get_expr:text
CREATE INDEX i1 ON public.mt USING btree (id2) WHERE (id2 > 0)|(id2 > 0)|id2 > 0
CREATE INDEX i2 ON public.mt USING btree (id2) WHERE b|b|b
CREATE INDEX i3 ON public.mt USING btree (id2) WHERE ((id2 > 0) AND b)|((id2 > 0) AND b)|id2 > 0 AND b
CREATE INDEX i4 ON public.mt USING btree (id2) WHERE (id2 IS NOT NULL)|(id2 IS NOT NULL)|id2 IS NOT NULL
CREATE INDEX i6 ON public.mt USING btree (id2) WHERE (NOT b)|(NOT b)|NOT b
CREATE INDEX i9 ON public.mt USING btree (id2) WHERE (t ~~ 'a%'::text)|(t ~~ 'a%'::text)|t ~~ 'a%'::text
CREATE INDEX i10 ON public.mt USING btree (id2) WHERE starts_with(t, 'a'::text)|starts_with(t, 'a'::text)|starts_with(t, 'a'::text)
ALTER TYPE
adnum:int2|pg_get_expr:text
1|'ok'::temper
2|'{ok}'::temper[]
m:enum|ms:_enum|e:int4|id2:int4|t:text|b:bool|bb:bool|l:int8|i:int4
ok|{ok}|12|5|NULL|NULL|t|6|5
INSERT 0 1
DROP TABLE
DROP TYPE
