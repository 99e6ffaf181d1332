# The system catalog as tables: pg_catalog and information_schema. OIDs are those of PostgreSQL; those of tables are ids
# of the catalog.
create table acc (id int primary key, name varchar(20) not null default 'x', "Mixed" numeric(10,2), tags text[]);
create table plain (a int);
create table pair (a int, b text default now()::text, primary key (b, a));
----

select oid, relname, relnamespace, relkind, relnatts, relhasindex, relam from pg_class where oid >= 16384 order by oid;
----

select oid, relname, relkind, relnatts, relisshared from pg_catalog.pg_class where relname in ('pg_class', 'pg_tables', 'pg_database', 'columns') order by oid;
----

select count(*) > 200 from pg_class where relkind in ('r', 'v');
----

select attname, atttypid::regtype, attnum, atttypmod, attnotnull, atthasdef, attndims, attcollation from pg_attribute where attrelid = 'acc'::regclass order by attnum;
----

select attname, attnum from pg_attribute where attrelid = 'pair_pkey'::regclass order by attnum;
----

select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = '16384' and attnum > 0 and not attisdropped order by attnum;
----

select attrelid::regclass, attname from pg_attribute where atttypid = 2206 order by 1, attnum;
----

select indexrelid::regclass, indrelid::regclass, indnatts, indisunique, indisprimary, indkey, indclass, indoption from pg_index order by indrelid;
----

select indkey[0], indkey[1], pg_get_indexdef(indexrelid, 0, true), pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 2, false) from pg_index where indrelid = 'pair'::regclass;
----

select conname, contype, conrelid::regclass, conindid::regclass, conkey, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) from pg_constraint order by conrelid;
----

select adrelid::regclass, adnum, pg_get_expr(adbin, adrelid), pg_get_expr(adbin, adrelid, true) from pg_attrdef order by 1;
----

select oid, nspname, pg_get_userbyid(nspowner) from pg_namespace order by oid;
----

select oid, typname, typlen, typinput, typreceive, typarray from pg_type where oid in (23, 25, 1009, 1700) order by oid;
----

select typname from pg_type where typreceive = 'array_recv'::regproc and typelem = 'int4'::regtype;
----

select typname, typtype, typbasetype::regtype, typtypmod from pg_type where typnamespace = 13207 and typtype = 'd' order by 1;
----

select oid, typbasetype from pg_type where typname = 'lo';
----

select oid, proname, prokind, proargtypes, prorettype::regtype from pg_proc where proname in ('now', 'count', 'int4in') order by oid;
----

select oid, oprname, oprleft::regtype, oprright::regtype, oprcode from pg_operator where oid in (96, 98);
----

select castsource::regtype, casttarget::regtype, castfunc, castcontext, castmethod from pg_cast where castsource = 16 order by 2;
----

select aggfnoid::oid, aggkind, aggnumdirectargs from pg_aggregate where aggkind = 'o' order by 1 limit 2;
----

select schemaname, tablename, tableowner, hasindexes from pg_tables where schemaname = 'public' order by 2;
----

select * from pg_indexes order by indexname;
----

select schemaname, viewname from pg_views where viewname in ('pg_tables', 'columns') order by 2;
----

select oid, datname, encoding, datcollate, datallowconn from pg_database;
----

select rolname, rolsuper, rolcanlogin, oid = 10, rolpassword from pg_roles order by rolname;
----

select usename, passwd from pg_user order by 1;
----

select rolname, rolpassword from pg_authid order by 1;
----

select name, setting, vartype, context, source, enumvals from pg_settings where name in ('search_path', 'IntervalStyle', 'server_version_num', 'lock_timeout') order by name;
----

set extra_float_digits = 3;
select setting, boot_val, source, min_val, max_val from pg_settings where name = 'extra_float_digits';
----

select datname, usename, state, backend_type, client_port > 0, backend_start = now() from pg_stat_activity where pid = pg_backend_pid();
----

select relid::regclass, schemaname, seq_scan from pg_stat_user_tables order by 1;
----

select abbrev, utc_offset, is_dst from pg_timezone_names where name = 'America/New_York';
----

select utc_offset, is_dst from pg_timezone_abbrevs where abbrev = 'CEST';
----

# What belongs to features that do not exist is empty. What exists, and is not known, is refused.
select count(*) from pg_trigger;
select count(*) from pg_enum;
select count(*) from pg_range;
select count(*) from pg_extension;
select count(*) from pg_depend;
select * from pg_inherits;
----

select * from pg_locks;
----

select * from information_schema.sql_features;
----

# information_schema
select table_schema, table_name, table_type, is_insertable_into from information_schema.tables where table_schema = 'public' order by 2;
----

select column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale, udt_name from information_schema.columns where table_name = 'acc' order by 2;
----

select domain_name, collation_name, data_type from information_schema.columns where table_schema = 'information_schema' and table_name = 'columns' and column_name in ('table_name', 'is_nullable') order by 1;
----

select constraint_name, table_name, constraint_type from information_schema.table_constraints order by 2, 1;
----

select constraint_name, check_clause from information_schema.check_constraints order by 1;
----

select constraint_name, table_name, column_name, ordinal_position from information_schema.key_column_usage order by 2, 4;
----

select table_name, column_name, constraint_name from information_schema.constraint_column_usage order by 1, 2;
----

select catalog_name, schema_name, schema_owner from information_schema.schemata order by 2;
----

select specific_name, data_type, is_deterministic from information_schema.routines where routine_name = 'current_schemas';
----

select ordinal_position, parameter_mode, data_type from information_schema.parameters where specific_name = 'current_schemas_1403';
----

select count(*) from information_schema.referential_constraints;
select * from information_schema.information_schema_catalog_name;
select character_set_name from information_schema.character_sets;
----

# Names: pg_catalog comes first, information_schema has to be written.
select count(*) from columns;
----

select count(*) from pg_catalog.nothing;
----

select count(*) from public.pg_class;
----

select c.relname from pg_class as c where c.relname = 'acc';
----

select relname from pg_catalog.pg_class c where pg_class.relname = 'acc';
----

create table pg_am (mine int);
select * from pg_am order by oid;
select * from public.pg_am;
select 'public.pg_am'::regclass, 'pg_am'::regclass;
----

# A transaction sees its own tables.
begin;
create table later (id int primary key);
select relname, 'later'::regclass::oid = oid from pg_class where relname = 'later';
rollback;
select count(*) from pg_class where relname = 'later';
----

# A plan is used again after the table behind a name is another one.
select count(*) from pg_attribute where attrelid = 'plain'::regclass;
drop table plain;
create table plain (a int, b int);
select count(*) from pg_attribute where attrelid = 'plain'::regclass;
----

\params 16384
select relname from pg_class where oid = $1;
----

\params acc
select relkind from pg_class where oid = $1::pg_catalog.regclass;
----

explain select relname from pg_class where relkind = 'r' order by 1 limit 1;
----

insert into pg_class (relname) values ('x');
----

update pg_catalog.pg_type set typname = 'x';
----

delete from information_schema.tables;
----

truncate pg_class;
----

drop table pg_class;
----

select oid from pg_class for update;
----

vacuum pg_class;
analyze pg_catalog.pg_type;
----

insert into plain select oid::int4, 1 from pg_namespace where nspname = 'pg_catalog';
select * from plain;
----
