# The system catalog as tables: pg_catalog and information_schema. OIDs are those of PostgreSQL; those of tables are ids
# of the catalog.
create table acc (id int primary key, name varchar(20) not null default 'x', "Mixed" numeric(10,2), tags text[]);
create table plain (a int);
create table pair (a int, b text default now()::text, primary key (b, a));
----
CREATE TABLE
CREATE TABLE
CREATE TABLE

select oid, relname, relnamespace, relkind, relnatts, relhasindex, relam from pg_class where oid >= 16384 order by oid;
----
oid:oid|relname:name|relnamespace:oid|relkind:char|relnatts:int2|relhasindex:bool|relam:oid
16384|acc|2200|r|4|t|2
16385|acc_pkey|2200|i|1|f|403
16386|plain|2200|r|1|f|2
16387|pair|2200|r|2|t|2
16388|pair_pkey|2200|i|2|f|403

select oid, relname, relkind, relnatts, relisshared from pg_catalog.pg_class where relname in ('pg_class', 'pg_tables', 'pg_database', 'columns') order by oid;
----
oid:oid|relname:name|relkind:char|relnatts:int2|relisshared:bool
1259|pg_class|r|33|f
1262|pg_database|r|16|t
12033|pg_tables|v|8|f
13295|columns|v|44|f

select count(*) > 200 from pg_class where relkind in ('r', 'v');
----
?column?:bool
t

select attname, atttypid::regtype, attnum, atttypmod, attnotnull, atthasdef, attndims, attcollation from pg_attribute where attrelid = 'acc'::regclass order by attnum;
----
attname:name|atttypid:regtype|attnum:int2|atttypmod:int4|attnotnull:bool|atthasdef:bool|attndims:int4|attcollation:oid
id|integer|1|-1|t|f|0|0
name|character varying|2|24|t|t|0|100
Mixed|numeric|3|655366|f|f|0|0
tags|text[]|4|-1|f|f|1|100

select attname, attnum from pg_attribute where attrelid = 'pair_pkey'::regclass order by attnum;
----
attname:name|attnum:int2
b|1
a|2

select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = '16384' and attnum > 0 and not attisdropped order by attnum;
----
attname:name|format_type:text
id|integer
name|character varying(20)
Mixed|numeric(10,2)
tags|text[]

select attrelid::regclass, attname from pg_attribute where atttypid = 2206 order by 1, attnum;
----
attrelid:regclass|attname:name
pg_sequences|data_type

select indexrelid::regclass, indrelid::regclass, indnatts, indisunique, indisprimary, indkey, indclass, indoption from pg_index order by indrelid;
----
indexrelid:regclass|indrelid:regclass|indnatts:int2|indisunique:bool|indisprimary:bool|indkey:int2vector|indclass:oidvector|indoption:int2vector
acc_pkey|acc|1|t|t|1|1978|0
pair_pkey|pair|2|t|t|2 1|3126 1978|0 0

select indkey[0], indkey[1], pg_get_indexdef(indexrelid, 0, true), pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 2, false) from pg_index where indrelid = 'pair'::regclass;
----
indkey:int2|indkey:int2|pg_get_indexdef:text|pg_get_indexdef:text|pg_get_indexdef:text
2|1|CREATE UNIQUE INDEX pair_pkey ON pair USING btree (b, a)|CREATE UNIQUE INDEX pair_pkey ON public.pair USING btree (b, a)|a

select conname, contype, conrelid::regclass, conindid::regclass, conkey, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) from pg_constraint order by conrelid;
----
conname:name|contype:char|conrelid:regclass|conindid:regclass|conkey:_int2|pg_get_constraintdef:text|pg_get_constraintdef:text
acc_pkey|p|acc|acc_pkey|{1}|PRIMARY KEY (id)|PRIMARY KEY (id)
pair_pkey|p|pair|pair_pkey|{2,1}|PRIMARY KEY (b, a)|PRIMARY KEY (b, a)

select adrelid::regclass, adnum, pg_get_expr(adbin, adrelid), pg_get_expr(adbin, adrelid, true) from pg_attrdef order by 1;
----
adrelid:regclass|adnum:int2|pg_get_expr:text|pg_get_expr:text
acc|2|'x'::character varying|'x'::character varying
pair|2|(now())::text|now()::text

select oid, nspname, pg_get_userbyid(nspowner) from pg_namespace order by oid;
----
oid:oid|nspname:name|pg_get_userbyid:name
11|pg_catalog|postgres
2200|public|pg_database_owner
13207|information_schema|postgres

select oid, typname, typlen, typinput, typreceive, typarray from pg_type where oid in (23, 25, 1009, 1700) order by oid;
----
oid:oid|typname:name|typlen:int2|typinput:regproc|typreceive:regproc|typarray:oid
23|int4|4|int4in|int4recv|1007
25|text|-1|textin|textrecv|1009
1009|_text|-1|array_in|array_recv|0
1700|numeric|-1|numeric_in|numeric_recv|1231

select typname from pg_type where typreceive = 'array_recv'::regproc and typelem = 'int4'::regtype;
----
typname:name
_int4

select typname, typtype, typbasetype::regtype, typtypmod from pg_type where typnamespace = 13207 and typtype = 'd' order by 1;
----
typname:name|typtype:char|typbasetype:regtype|typtypmod:int4
cardinal_number|d|integer|-1
character_data|d|character varying|-1
sql_identifier|d|name|-1
time_stamp|d|timestamp with time zone|2
yes_or_no|d|character varying|7

select oid, typbasetype from pg_type where typname = 'lo';
----
oid:oid|typbasetype:oid

select oid, proname, prokind, proargtypes, prorettype::regtype from pg_proc where proname in ('now', 'count', 'int4in') order by oid;
----
oid:oid|proname:name|prokind:char|proargtypes:oidvector|prorettype:regtype
42|int4in|f|2275|integer
1299|now|f||timestamp with time zone
2147|count|a|2276|bigint
2803|count|a||bigint

select oid, oprname, oprleft::regtype, oprright::regtype, oprcode from pg_operator where oid in (96, 98);
----
oid:oid|oprname:name|oprleft:regtype|oprright:regtype|oprcode:regproc
96|=|integer|integer|int4eq
98|=|text|text|texteq

select castsource::regtype, casttarget::regtype, castfunc, castcontext, castmethod from pg_cast where castsource = 16 order by 2;
----
castsource:regtype|casttarget:regtype|castfunc:oid|castcontext:char|castmethod:char
boolean|integer|2558|e|f
boolean|text|2971|a|f
boolean|character|2971|a|f
boolean|character varying|2971|a|f

select aggfnoid::oid, aggkind, aggnumdirectargs from pg_aggregate where aggkind = 'o' order by 1 limit 2;
----
aggfnoid:oid|aggkind:char|aggnumdirectargs:int2
3972|o|1
3974|o|1

select schemaname, tablename, tableowner, hasindexes from pg_tables where schemaname = 'public' order by 2;
----
schemaname:name|tablename:name|tableowner:name|hasindexes:bool
public|acc|postgres|t
public|pair|postgres|t
public|plain|postgres|f

select * from pg_indexes order by indexname;
----
schemaname:name|tablename:name|indexname:name|tablespace:name|indexdef:text
public|acc|acc_pkey|NULL|CREATE UNIQUE INDEX acc_pkey ON public.acc USING btree (id)
public|pair|pair_pkey|NULL|CREATE UNIQUE INDEX pair_pkey ON public.pair USING btree (b, a)

select schemaname, viewname from pg_views where viewname in ('pg_tables', 'columns') order by 2;
----
schemaname:name|viewname:name
information_schema|columns
pg_catalog|pg_tables

select oid, datname, encoding, datcollate, datallowconn from pg_database;
----
oid:oid|datname:name|encoding:int4|datcollate:text|datallowconn:bool
5|postgres|6|C|t

select rolname, rolsuper, rolcanlogin, oid = 10, rolpassword from pg_roles order by rolname;
----
rolname:name|rolsuper:bool|rolcanlogin:bool|?column?:bool|rolpassword:text
ann|t|t|f|********
pg_database_owner|f|f|f|********
postgres|t|t|t|********

select usename, passwd from pg_user order by 1;
----
usename:name|passwd:text
ann|********
postgres|********

select rolname, rolpassword from pg_authid order by 1;
----
rolname:name|rolpassword:text
ann|NULL
pg_database_owner|NULL
postgres|NULL

select name, setting, vartype, context, source, enumvals from pg_settings where name in ('search_path', 'IntervalStyle', 'server_version_num', 'lock_timeout') order by name;
----
name:text|setting:text|vartype:text|context:text|source:text|enumvals:_text
IntervalStyle|postgres|enum|user|default|{postgres,postgres_verbose,sql_standard,iso_8601}
lock_timeout|0|integer|user|default|NULL
search_path|"$user", public|string|user|default|NULL
server_version_num|150000|integer|internal|default|NULL

set extra_float_digits = 3;
select setting, boot_val, source, min_val, max_val from pg_settings where name = 'extra_float_digits';
----
SET
setting:text|boot_val:text|source:text|min_val:text|max_val:text
3|1|session|-15|3

select datname, usename, state, backend_type, client_port > 0, backend_start = now() from pg_stat_activity where pid = pg_backend_pid();
----
datname:name|usename:name|state:text|backend_type:text|?column?:bool|?column?:bool
postgres|ann|active|client backend|t|t

select relid::regclass, schemaname, seq_scan from pg_stat_user_tables order by 1;
----
relid:regclass|schemaname:name|seq_scan:int8
acc|public|NULL
plain|public|NULL
pair|public|NULL

select abbrev, utc_offset, is_dst from pg_timezone_names where name = 'America/New_York';
----
abbrev:text|utc_offset:interval|is_dst:bool
EDT|-04:00:00|t

select utc_offset, is_dst from pg_timezone_abbrevs where abbrev = 'CEST';
----
utc_offset:interval|is_dst:bool
02:00:00|t

# What belongs to features that do not exist is empty. What exists, and is not known, is refused.
select count(*) from pg_trigger;
select count(*) from pg_enum;
select count(*) from pg_range;
select count(*) from pg_extension;
select count(*) from pg_depend;
select * from pg_inherits;
----
count:int8
0
count:int8
0
count:int8
0
count:int8
0
count:int8
0
inhrelid:oid|inhparent:oid|inhseqno:int4|inhdetachpending:bool

select * from pg_stat_bgwriter;
----
ERROR 0A000: relation "pg_catalog.pg_stat_bgwriter" is not supported yet

select * from information_schema.sql_features;
----
ERROR 0A000: relation "information_schema.sql_features" is not supported yet

# information_schema
select table_schema, table_name, table_type, is_insertable_into from information_schema.tables where table_schema = 'public' order by 2;
----
table_schema:name|table_name:name|table_type:varchar|is_insertable_into:varchar
public|acc|BASE TABLE|YES
public|pair|BASE TABLE|YES
public|plain|BASE TABLE|YES

select column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale, udt_name from information_schema.columns where table_name = 'acc' order by 2;
----
column_name:name|ordinal_position:int4|column_default:varchar|is_nullable:varchar|data_type:varchar|character_maximum_length:int4|numeric_precision:int4|numeric_scale:int4|udt_name:name
id|1|NULL|NO|integer|NULL|32|0|int4
name|2|'x'::character varying|NO|character varying|20|NULL|NULL|varchar
Mixed|3|NULL|YES|numeric|NULL|10|2|numeric
tags|4|NULL|YES|ARRAY|NULL|NULL|NULL|_text

select domain_name, collation_name, data_type from information_schema.columns where table_schema = 'information_schema' and table_name = 'columns' and column_name in ('table_name', 'is_nullable') order by 1;
----
domain_name:name|collation_name:name|data_type:varchar
sql_identifier|C|name
yes_or_no|C|character varying

select constraint_name, table_name, constraint_type from information_schema.table_constraints order by 2, 1;
----
constraint_name:name|table_name:name|constraint_type:varchar
2200_16384_1_not_null|acc|CHECK
2200_16384_2_not_null|acc|CHECK
acc_pkey|acc|PRIMARY KEY
2200_16387_1_not_null|pair|CHECK
2200_16387_2_not_null|pair|CHECK
pair_pkey|pair|PRIMARY KEY

select constraint_name, check_clause from information_schema.check_constraints order by 1;
----
constraint_name:name|check_clause:varchar
2200_16384_1_not_null|id IS NOT NULL
2200_16384_2_not_null|name IS NOT NULL
2200_16387_1_not_null|a IS NOT NULL
2200_16387_2_not_null|b IS NOT NULL

select constraint_name, table_name, column_name, ordinal_position from information_schema.key_column_usage order by 2, 4;
----
constraint_name:name|table_name:name|column_name:name|ordinal_position:int4
acc_pkey|acc|id|1
pair_pkey|pair|b|1
pair_pkey|pair|a|2

select table_name, column_name, constraint_name from information_schema.constraint_column_usage order by 1, 2;
----
table_name:name|column_name:name|constraint_name:name
acc|id|acc_pkey
pair|a|pair_pkey
pair|b|pair_pkey

select catalog_name, schema_name, schema_owner from information_schema.schemata order by 2;
----
catalog_name:name|schema_name:name|schema_owner:name
postgres|information_schema|postgres
postgres|pg_catalog|postgres
postgres|public|pg_database_owner

select specific_name, data_type, is_deterministic from information_schema.routines where routine_name = 'current_schemas';
----
specific_name:name|data_type:varchar|is_deterministic:varchar
current_schemas_1403|ARRAY|NO

select ordinal_position, parameter_mode, data_type from information_schema.parameters where specific_name = 'current_schemas_1403';
----
ordinal_position:int4|parameter_mode:varchar|data_type:varchar
1|IN|boolean

select count(*) from information_schema.referential_constraints;
select * from information_schema.information_schema_catalog_name;
select character_set_name from information_schema.character_sets;
----
count:int8
0
catalog_name:name
postgres
character_set_name:name
UTF8

# Names: pg_catalog comes first, information_schema has to be written.
select count(*) from columns;
----
ERROR 42P01: relation "columns" does not exist [at 22]

select count(*) from pg_catalog.nothing;
----
ERROR 42P01: relation "pg_catalog.nothing" does not exist [at 22]

select count(*) from public.pg_class;
----
ERROR 42P01: relation "public.pg_class" does not exist [at 22]

select c.relname from pg_class as c where c.relname = 'acc';
----
relname:name
acc

select relname from pg_catalog.pg_class c where pg_class.relname = 'acc';
----
ERROR 42P01: invalid reference to FROM-clause entry for table "pg_class" [at 49]
HINT: Perhaps you meant to reference the table alias "c".

create table pg_am (mine int);
select * from pg_am order by oid;
select * from public.pg_am;
select 'public.pg_am'::regclass, 'pg_am'::regclass;
----
CREATE TABLE
oid:oid|amname:name|amhandler:regproc|amtype:char
2|heap|-|t
403|btree|-|i
mine:int4
regclass:regclass|regclass:regclass
public.pg_am|pg_am

# A transaction sees its own tables.
begin;
create table later (id int primary key);
select relname, 'later'::regclass::oid = oid from pg_class where relname = 'later';
rollback;
select count(*) from pg_class where relname = 'later';
----
BEGIN
CREATE TABLE
relname:name|?column?:bool
later|t
ROLLBACK
count:int8
0

# A plan is used again after the table behind a name is another one.
select count(*) from pg_attribute where attrelid = 'plain'::regclass;
drop table plain;
create table plain (a int, b int);
select count(*) from pg_attribute where attrelid = 'plain'::regclass;
----
count:int8
1
DROP TABLE
CREATE TABLE
count:int8
2

\params 16384
select relname from pg_class where oid = $1;
----
params oid
relname:name
acc

\params acc
select relkind from pg_class where oid = $1::pg_catalog.regclass;
----
params regclass
relkind:char
r

explain select relname from pg_class where relkind = 'r' order by 1 limit 1;
----
Limit
  ->  Sort
        Sort Key: relname
        ->  System Scan on pg_catalog.pg_class
              Filter: (relkind = 'r'::text)

insert into pg_class (relname) values ('x');
----
ERROR 42501: permission denied: "pg_class" is a system catalog

update pg_catalog.pg_type set typname = 'x';
----
ERROR 42501: permission denied: "pg_type" is a system catalog

delete from information_schema.tables;
----
ERROR 42501: permission denied: "tables" is a system catalog

truncate pg_class;
----
ERROR 42501: permission denied: "pg_class" is a system catalog

drop table pg_class;
----
ERROR 42501: permission denied: "pg_class" is a system catalog

select oid from pg_class for update;
----
ERROR 0A000: a lock of rows of a system catalog is not supported yet [at 1]

vacuum pg_class;
analyze pg_catalog.pg_type;
----
VACUUM
ANALYZE

insert into plain select oid::int4, 1 from pg_namespace where nspname = 'pg_catalog';
select * from plain;
----
INSERT 0 1
a:int4|b:int4
11|1

# What the session has prepared and declared.
prepare q (int, text) as select $1, $2;
begin;
declare c scroll cursor for select 1;
declare h binary no scroll cursor with hold for values (1);
select * from pg_prepared_statements;
select * from pg_cursors order by name;
select name, statement from pg_cursor() order by name;
commit;
select name, is_holdable from pg_cursors;
deallocate q;
close h;
select count(*) from pg_prepared_statements;
select count(*) from pg_cursors;
----
PREPARE
BEGIN
DECLARE CURSOR
DECLARE CURSOR
name:text|statement:text|prepare_time:timestamptz|parameter_types:_regtype|from_sql:bool|generic_plans:int8|custom_plans:int8
q|prepare q (int, text) as select $1, $2;|2024-05-05 07:08:09.500678+00|{integer,text}|t|NULL|NULL
name:text|statement:text|is_holdable:bool|is_binary:bool|is_scrollable:bool|creation_time:timestamptz
c|declare c scroll cursor for select 1;|f|f|t|2024-05-05 07:08:09.500678+00
h|declare h binary no scroll cursor with hold for values (1);|t|t|f|2024-05-05 07:08:09.500678+00
name:text|statement:text
c|declare c scroll cursor for select 1;
h|declare h binary no scroll cursor with hold for values (1);
COMMIT
name:text|is_holdable:bool
h|t
DEALLOCATE
CLOSE CURSOR
count:int8
0
count:int8
0
