# The functions of the system catalog, and names of objects.
create table acc (id int primary key, name varchar(20) not null default 'x');
----

select format_type(23, null), format_type(1043, 9), format_type(1042, -1), format_type(1042, null), format_type(1014, -1), format_type(0, null), format_type(1, null), format_type(13226, null), format_type(13225, null), format_type(null, 3);
----

select 'pg_class'::regclass::oid, 'pg_catalog.pg_type'::regclass, 'information_schema.tables'::regclass, 'ACC'::regclass, '"acc"'::regclass, 'public.acc_pkey'::regclass;
----

select 1259::regclass, 99999::regclass, 0::regclass, '-'::regclass, '1259'::regclass;
----

select 'nosuch'::regclass;
----

select 'a.b.c'::regclass;
----

select 'a b'::regclass;
----

select 'now'::regproc, 'array_in'::regproc, 'now'::regproc::oid, 'count'::regproc;
----

select 'now()'::regprocedure, 'format_type(oid, integer)'::regprocedure::oid, 'pg_catalog.array_in(cstring, oid, integer)'::regprocedure;
----

select 'nosuch()'::regprocedure;
----

select 'nosuch'::regproc;
----

select '=(int4,int4)'::regoperator::oid, 96::regoperator, 96::regoper, '-(NONE,int4)'::regoperator::oid;
----

select '='::regoper;
----

select 'int4'::regtype, 'timestamp with time zone'::regtype::oid, 'text[]'::regtype, 'information_schema.sql_identifier'::regtype::oid;
----

select 'nosuch'::regtype;
----

select 'public'::regnamespace::oid, 11::regnamespace, 13207::regnamespace, 'postgres'::regrole::oid, 10::regrole, '"default"'::regcollation::oid, 950::regcollation, 100::regcollation;
----

select 'nosuch'::regnamespace;
----

select 'nosuch'::regrole;
----

select 'nosuch'::regcollation;
----

select to_regclass('acc'), to_regclass('nosuch'), to_regtype('int4'), to_regtype('nosuch'), to_regproc('now'), to_regproc('count'), to_regprocedure('now()'), to_regnamespace('public'), to_regrole('x'), to_regcollation('C'), to_regoper('='), to_regoperator('=(int4,int4)');
----

select to_regclass('a b');
----

select int4in('1');
----

select pg_get_userbyid(10), pg_get_userbyid(77), pg_table_is_visible('acc'::regclass), pg_table_is_visible(1259), pg_table_is_visible(13425), pg_table_is_visible(5), pg_type_is_visible(23), pg_type_is_visible(13226), pg_function_is_visible(1299), pg_operator_is_visible(96), pg_collation_is_visible(950), pg_opclass_is_visible(1978), pg_ts_config_is_visible(1);
----

select current_schemas(true), current_schemas(false), pg_encoding_to_char(6), pg_encoding_to_char(99), pg_char_to_encoding('utf-8'), pg_char_to_encoding('foo'), pg_client_encoding(), getdatabaseencoding();
----

select pg_get_function_arguments(oid), pg_get_function_identity_arguments(oid), pg_get_function_result(oid) from pg_proc where oid in (1081, 3464, 2289, 3425, 1299, 2078) order by oid;
----

select pg_get_functiondef('now'::regproc);
----

select pg_get_functiondef('count("any")'::regprocedure);
----

select pg_get_indexdef(0), pg_get_constraintdef(7), pg_get_viewdef('pg_tables'::regclass), pg_get_viewdef('pg_tables'::regclass, true), pg_get_partkeydef('acc'::regclass), pg_get_statisticsobjdef_columns(1), pg_get_triggerdef(1), pg_get_ruledef(1), pg_partition_root('acc');
----

select pg_get_serial_sequence('acc', 'id');
----

select pg_get_serial_sequence('acc', 'nosuch');
----

select pg_get_serial_sequence('nosuch', 'id');
----

select obj_description('acc'::regclass, 'pg_class'), obj_description(1), col_description('acc'::regclass, 1), shobj_description(10, 'pg_authid');
----

select pg_relation_size('acc'), pg_relation_size('acc', 'fsm'), pg_table_size('acc'), pg_total_relation_size('acc'), pg_indexes_size('acc'), pg_database_size('shop'), pg_relation_size(5), pg_size_pretty(pg_relation_size('acc')), pg_size_pretty(123456789::bigint);
----

select pg_relation_size('acc', 'foo');
----

select pg_database_size('nosuch');
----

select has_table_privilege('acc', 'select'), has_table_privilege('ann', 'acc', 'INSERT, update with grant option'), has_table_privilege('acc'::regclass, 'select'), has_table_privilege(5::oid, 'select'), has_column_privilege('acc', 'name', 'select'), has_column_privilege('acc', 2::int2, 'select'), has_schema_privilege('public', 'usage'), has_database_privilege('shop', 'connect'), has_function_privilege('now()', 'execute'), has_type_privilege('int4', 'usage'), has_any_column_privilege('pg_class', 'select'), pg_has_role('postgres', 'member'), has_schema_privilege('postgres', 'public', 'create');
----

select has_table_privilege('acc', 'foo');
----

select has_table_privilege('nobody', 'acc', 'select');
----

select has_table_privilege('nosuch', 'select');
----

select has_schema_privilege('nosuch', 'usage');
----

select has_column_privilege('acc', 'nosuch', 'select');
----

select has_database_privilege('nosuch', 'connect');
----

select pg_has_role('postgres', 'foo');
----

select pg_is_in_recovery(), pg_postmaster_start_time() = now(), row_security_active('acc'), pg_my_temp_schema(), pg_is_other_temp_schema(1), pg_relation_is_publishable('acc'), pg_relation_is_publishable('pg_class'), pg_get_replica_identity_index('acc'), inet_client_port() > 0, pg_safe_snapshot_blocking_pids(1);
----

select row_security_active('nosuch');
----

select pg_blocking_pids(1);
----

begin;
select txid_current() > 0, pg_current_xact_id() is not null, txid_current() = txid_current_if_assigned();
rollback;
select txid_current() > 0;
----

select pg_get_expr('1 + 1', 0);
----
