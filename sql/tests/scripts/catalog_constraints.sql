# Indexes and constraints as the system catalog shows them.

create table p (a int, b text, primary key (a, b), unique (b));
create table c (
  id int primary key,
  a int,
  b text,
  n int check (n > 0),
  g int generated always as (n * 2) stored,
  d int default 1 + 2,
  constraint c_p foreign key (a, b) references p (a, b) match full on update cascade on delete set null,
  foreign key (b) references p (b) deferrable,
  constraint big check (n < 100 or a is null),
  unique (a, n)
);
create index c_n on c (n desc, lower(b) nulls first) include (a) where n > 5;
create unique index c_d on c (d desc nulls last);
----

select conname, contype, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true), conkey, confkey, confupdtype,
confdeltype, confmatchtype, condeferrable, confrelid::regclass, conindid::regclass
from pg_constraint where conrelid in ('p'::regclass, 'c'::regclass) order by conrelid::regclass::text, conname;
----

select indexrelid::regclass, indnatts, indnkeyatts, indisunique, indisprimary, indkey, indoption,
pg_get_expr(indexprs, indrelid), pg_get_expr(indpred, indrelid), pg_get_indexdef(indexrelid)
from pg_index where indrelid in ('p'::regclass, 'c'::regclass) order by 1::text;
----

select a.attrelid::regclass, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), pg_get_indexdef(a.attrelid,
a.attnum, true) from pg_attribute a where a.attrelid in ('c_n'::regclass, 'c_d'::regclass) order by 1::text, 2;
----

select attname, atthasdef, attgenerated, pg_get_expr(d.adbin, d.adrelid) from pg_attribute a left join pg_attrdef d on
d.adrelid = a.attrelid and d.adnum = a.attnum where a.attrelid = 'c'::regclass and a.attnum > 0 order by a.attnum;
select relname, relchecks, relhasindex, relhastriggers from pg_class where relname in ('p', 'c') order by 1;
select schemaname, tablename, indexname, indexdef from pg_indexes where tablename in ('p', 'c') order by indexname;
----

select constraint_name, table_name, constraint_type, is_deferrable from information_schema.table_constraints where
table_name in ('p', 'c') and constraint_name not like '%not_null' order by 1;
select constraint_name, table_name, column_name, ordinal_position, position_in_unique_constraint from
information_schema.key_column_usage where table_name in ('p', 'c') order by 1, 4;
select constraint_name, table_name, column_name from information_schema.constraint_column_usage where table_name = 'p'
order by 1, 3;
select constraint_name, unique_constraint_name, match_option, update_rule, delete_rule from
information_schema.referential_constraints order by 1;
----
