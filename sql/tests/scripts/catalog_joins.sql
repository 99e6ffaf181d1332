# Relations of the system catalog in joins, sub-queries, WITH and set operations, and the queries of psql 15.
create table t (a int primary key, b text not null default 'x', c numeric(10,2));
create table u (id bigint primary key, a int, v varchar(5)[]);
----
CREATE TABLE
CREATE TABLE

select c.relname, n.nspname, a.amname from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_am a on a.oid = c.relam where c.oid >= 16384 order by 1;
select c.relname, count(*) from pg_class c join pg_attribute a on a.attrelid = c.oid where c.relnamespace = 'public'::regnamespace group by c.relname order by 1;
select c.relname, a.attname from pg_class c right join pg_attribute a on a.attrelid = c.oid and c.relname = 't' where a.attrelid >= 16384 and a.attnum = 1 order by 1, 2;
select count(*) from pg_type t full join pg_class c on c.reltype = t.oid where t.oid is null or c.oid is null having count(*) > 300;
select relname from pg_class where oid in (select attrelid from pg_attribute where attname = 'v') order by 1;
select relname, (select count(*) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0) from pg_class c where relname in ('t', 'u') order by 1;
select relname from pg_class c where exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary) order by 1;
with x as (select oid, relname from pg_class where relnamespace = 2200) select x.relname, t.a from x left join t on t.a = x.oid::int order by 1;
select nspname from pg_namespace union select relname from pg_class where oid = 't'::regclass order by 1;
select nspname from pg_namespace except select 'public' order by 1;
select t.*, c.relname from t, pg_class c where c.oid = 't'::regclass;
select table_name, column_name, data_type from information_schema.columns join information_schema.tables using (table_schema, table_name) where table_schema = 'public' order by 1, ordinal_position;
insert into t select 1, relname, relnatts from pg_class where relname = 'u' returning *;
select * from t join lateral (select typname from pg_type where oid = 22 + t.a) s on true;
----
relname:name|nspname:name|amname:name
t|public|heap
t_pkey|public|btree
u|public|heap
u_pkey|public|btree
relname:name|count:int8
t|3
t_pkey|1
u|3
u_pkey|1
relname:name|attname:name
t|a
NULL|a
NULL|id
NULL|id
count:int8
330
relname:name
u
relname:name|count:int8
t|3
u|3
relname:name
t
u
relname:name|a:int4
t|NULL
t_pkey|NULL
u|NULL
u_pkey|NULL
nspname:name
information_schema
pg_catalog
public
t
nspname:name
information_schema
pg_catalog
a:int4|b:text|c:numeric|relname:name
table_name:name|column_name:name|data_type:varchar
t|a|integer
t|b|text
t|c|numeric
u|id|bigint
u|a|integer
u|v|ARRAY
a:int4|b:text|c:numeric
1|u|3.00
INSERT 0 1
a:int4|b:text|c:numeric|typname:name
1|u|3.00|int4

# System columns, qualified names, vectors, functions that return sets.
select tableoid::regclass, relname from pg_class where oid = 't'::regclass;
select tableoid::regclass, a from t;
select c.tableoid, n.nspname, n.tableoid from pg_class c left join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'x' where c.relname = 'u';
select tableoid from (select * from t) s;
select tableoid from t, u;
select tableoid from information_schema.tables;
select pg_catalog.pg_class.relname, public.t.a from pg_catalog.pg_class, public.t where pg_catalog.pg_class.oid = public.t.a + 1258;
select pg_catalog.t.a from t;
select public.x.a from t x;
select indkey::int2[], indclass::oid[], array_upper(indkey, 1) from pg_index where indrelid = 't'::regclass;
select indkey[0], unnest(indkey), generate_subscripts(indkey, 1) from pg_index order by indrelid;
select a.attname from pg_index i cross join lateral unnest(i.indkey) with ordinality as k(attnum, n) join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum order by 1;
select * from pg_options_to_table(array['a=1', 'b=x=y', 'c']);
select count(*) > 100 from pg_timezone_names();
select name, setting from pg_show_all_settings() where name = 'TimeZone';
select s.n, s.x from generate_series(1, 3) with ordinality as s(x, n) left join pg_partition_ancestors('t') p(relid) on true order by 1;
select pg_partition_ancestors('t');
select unnest(current_schemas(true));
select pg_options_to_table(array['a=1']);
select 1 where pg_partition_ancestors('t') is null;
----
tableoid:regclass|relname:name
pg_class|t
tableoid:regclass|a:int4
t|1
tableoid:oid|nspname:name|tableoid:oid
1259|NULL|NULL
ERROR 42703: column "tableoid" does not exist [at 8]
ERROR 42703: column "tableoid" does not exist [at 8]
ERROR 42703: column "tableoid" does not exist [at 8]
relname:name|a:int4
pg_class|1
ERROR 42P01: missing FROM-clause entry for table "t" [at 8]
ERROR 42P01: missing FROM-clause entry for table "x" [at 8]
indkey:_int2|indclass:_oid|array_upper:int4
[0:0]={1}|[0:0]={1978}|0
indkey:int2|unnest:int2|generate_subscripts:int4
1|1|0
1|1|0
attname:name
a
id
option_name:text|option_value:text
a|1
b|x=y
c|NULL
?column?:bool
t
name:text|setting:text
TimeZone|UTC
n:int8|x:int4
1|1
2|2
3|3
pg_partition_ancestors:regclass
unnest:name
pg_catalog
public
pg_options_to_table:record
(a,1)
ERROR 0A000: set-returning functions are not allowed in WHERE [at 16]

# WITH inside a sub-query that uses values around it.
select relname, (with x as (select count(*) from pg_attribute where attrelid = c.oid and attnum > 0) select * from x) from pg_class c where oid in ('t'::regclass, 'u'::regclass) order by 1;
select g, (with recursive r(n) as (select g union all select n - 1 from r where n > 0) select array_agg(n) from r) from generate_series(0, 2) g;
select g, (with x as (select g * 10 as v) select (select v + g from x) + (select sum(v) from x, (select 1) y)) from generate_series(1, 2) g;
select g, s.* from generate_series(1, 3) g, lateral (with x as (select g as v), y as (select v + 1 as w from x) select v, w from x, y) s;
----
relname:name|?column?:int8
t|3
u|3
g:int4|array_agg:_int4
0|{0}
1|{1,0}
2|{2,1,0}
g:int4|?column?:int8
1|21
2|42
g:int4|v:int4|w:int4
1|1|2
2|2|3
3|3|4

# Queries of psql: \dt, \di, \d.
select n.nspname as "Schema", c.relname as "Name", case c.relkind when 'r' then 'table' when 'i' then 'index' end as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner" from pg_catalog.pg_class c left join pg_catalog.pg_namespace n on n.oid = c.relnamespace left join pg_catalog.pg_am am on am.oid = c.relam where c.relkind in ('r','p','') and n.nspname <> 'pg_catalog' and n.nspname !~ '^pg_toast' and n.nspname <> 'information_schema' and pg_catalog.pg_table_is_visible(c.oid) order by 1,2;
----
Schema:name|Name:name|Type:text|Owner:name
public|t|table|postgres
public|u|table|postgres

SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE c.relkind IN ('r','p','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2;
----
Schema:name|Name:name|Type:text|Owner:name
public|t|table|postgres
public|u|table|postgres

SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3;
----
oid:oid|nspname:name|relname:name
16384|public|t

SELECT c.relchecks, c.relkind, c.relhasindex, c.relhasrules, c.relhastriggers, c.relrowsecurity, c.relforcerowsecurity, false AS relhasoids, c.relispartition, '', c.reltablespace, CASE WHEN c.reloftype = 0 THEN '' ELSE c.reloftype::pg_catalog.regtype::pg_catalog.text END, c.relpersistence, c.relreplident, am.amname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_class tc ON (c.reltoastrelid = tc.oid) LEFT JOIN pg_catalog.pg_am am ON (c.relam = am.oid) WHERE c.oid = '16384';
----
relchecks:int2|relkind:char|relhasindex:bool|relhasrules:bool|relhastriggers:bool|relrowsecurity:bool|relforcerowsecurity:bool|relhasoids:bool|relispartition:bool|?column?:text|reltablespace:oid|reloftype:text|relpersistence:char|relreplident:char|amname:name
0|r|t|f|f|f|f|f|f||0||p|d|heap

SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef), a.attnotnull, (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type t WHERE c.oid = a.attcollation AND t.oid = a.atttypid AND a.attcollation <> t.typcollation) AS attcollation, a.attidentity, a.attgenerated FROM pg_catalog.pg_attribute a WHERE a.attrelid = '16384' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
----
attname:name|format_type:text|pg_get_expr:text|attnotnull:bool|attcollation:name|attidentity:char|attgenerated:char
a|integer|NULL|t|NULL||
b|text|'x'::text|t|NULL||
c|numeric(10,2)|NULL|f|NULL||

SELECT c2.relname, i.indisprimary, i.indisunique, i.indisclustered, i.indisvalid, pg_catalog.pg_get_indexdef(i.indexrelid, 0, true), pg_catalog.pg_get_constraintdef(con.oid, true), contype, condeferrable, condeferred, i.indisreplident, c2.reltablespace FROM pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i LEFT JOIN pg_catalog.pg_constraint con ON (conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p','u','x')) WHERE c.oid = '16384' AND c.oid = i.indrelid AND i.indexrelid = c2.oid ORDER BY i.indisprimary DESC, c2.relname;
----
relname:name|indisprimary:bool|indisunique:bool|indisclustered:bool|indisvalid:bool|pg_get_indexdef:text|pg_get_constraintdef:text|contype:char|condeferrable:bool|condeferred:bool|indisreplident:bool|reltablespace:oid
t_pkey|t|t|f|t|CREATE UNIQUE INDEX t_pkey ON t USING btree (a)|PRIMARY KEY (a)|p|f|f|f|0

SELECT r.conname, pg_catalog.pg_get_constraintdef(r.oid, true) FROM pg_catalog.pg_constraint r WHERE r.conrelid = '16384' AND r.contype = 'c' ORDER BY 1;
----
conname:name|pg_get_constraintdef:text

SELECT true as sametable, conname, pg_catalog.pg_get_constraintdef(r.oid, true) as condef, conrelid::pg_catalog.regclass AS ontable FROM pg_catalog.pg_constraint r WHERE r.conrelid = '16384' AND r.contype = 'f' AND conparentid = 0 ORDER BY conname;
----
sametable:bool|conname:name|condef:text|ontable:regclass

SELECT conname, conrelid::pg_catalog.regclass AS ontable, pg_catalog.pg_get_constraintdef(oid, true) AS condef FROM pg_catalog.pg_constraint c WHERE confrelid IN (SELECT pg_catalog.pg_partition_ancestors('16384') UNION ALL VALUES ('16384'::pg_catalog.regclass)) AND contype = 'f' AND conparentid = 0 ORDER BY conname;
----
conname:name|ontable:regclass|condef:text

SELECT pol.polname, pol.polpermissive, CASE WHEN pol.polroles = '{0}' THEN NULL ELSE pg_catalog.array_to_string(array(select rolname from pg_catalog.pg_roles where oid = any (pol.polroles) order by 1),',') END, pg_catalog.pg_get_expr(pol.polqual, pol.polrelid), pg_catalog.pg_get_expr(pol.polwithcheck, pol.polrelid), CASE pol.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' END AS cmd FROM pg_catalog.pg_policy pol WHERE pol.polrelid = '16384' ORDER BY 1;
----
polname:name|polpermissive:bool|array_to_string:text|pg_get_expr:text|pg_get_expr:text|cmd:text

SELECT oid, stxrelid::pg_catalog.regclass, stxnamespace::pg_catalog.regnamespace::pg_catalog.text AS nsp, stxname, pg_catalog.pg_get_statisticsobjdef_columns(oid) AS columns, 'd' = any(stxkind) AS ndist_enabled, 'f' = any(stxkind) AS deps_enabled, 'm' = any(stxkind) AS mcv_enabled, stxstattarget FROM pg_catalog.pg_statistic_ext WHERE stxrelid = '16384' ORDER BY nsp, stxname;
----
oid:oid|stxrelid:regclass|nsp:text|stxname:name|columns:text|ndist_enabled:bool|deps_enabled:bool|mcv_enabled:bool|stxstattarget:int4

SELECT pubname , NULL , NULL FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_namespace pn ON p.oid = pn.pnpubid JOIN pg_catalog.pg_class pc ON pc.relnamespace = pn.pnnspid WHERE pc.oid ='16384' and pg_catalog.pg_relation_is_publishable('16384') UNION SELECT pubname , pg_get_expr(pr.prqual, c.oid) , (CASE WHEN pr.prattrs IS NOT NULL THEN (SELECT string_agg(attname, ', ') FROM pg_catalog.generate_series(0, pg_catalog.array_upper(pr.prattrs::pg_catalog.int2[], 1)) s, pg_catalog.pg_attribute WHERE attrelid = pr.prrelid AND attnum = prattrs[s]) ELSE NULL END) FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel pr ON p.oid = pr.prpubid JOIN pg_catalog.pg_class c ON c.oid = pr.prrelid WHERE pr.prrelid = '16384' UNION SELECT pubname , NULL , NULL FROM pg_catalog.pg_publication p WHERE p.puballtables AND pg_catalog.pg_relation_is_publishable('16384') ORDER BY 1;
----
pubname:name|?column?:text|?column?:text

SELECT t.tgname, pg_catalog.pg_get_triggerdef(t.oid, true), t.tgenabled, t.tgisinternal, CASE WHEN t.tgparentid != 0 THEN (SELECT u.tgrelid::pg_catalog.regclass FROM pg_catalog.pg_trigger AS u, pg_catalog.pg_partition_ancestors(t.tgrelid) WITH ORDINALITY AS a(relid, depth) WHERE u.tgname = t.tgname AND u.tgrelid = a.relid AND u.tgparentid = 0 ORDER BY a.depth LIMIT 1) END AS parent FROM pg_catalog.pg_trigger t WHERE t.tgrelid = '16384' AND (NOT t.tgisinternal OR (t.tgisinternal AND t.tgenabled = 'D')) ORDER BY 1;
----
tgname:name|pg_get_triggerdef:text|tgenabled:char|tgisinternal:bool|parent:regclass

SELECT c.oid::pg_catalog.regclass FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i WHERE c.oid = i.inhparent AND i.inhrelid = '16384' AND c.relkind != 'p' AND c.relkind != 'I' ORDER BY inhseqno;
----
oid:regclass

SELECT c.oid::pg_catalog.regclass, c.relkind, inhdetachpending, pg_catalog.pg_get_expr(c.relpartbound, c.oid) FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i WHERE c.oid = i.inhrelid AND i.inhparent = '16384' ORDER BY pg_catalog.pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT', c.oid::pg_catalog.regclass::pg_catalog.text;
----
oid:regclass|relkind:char|inhdetachpending:bool|pg_get_expr:text

SELECT d.datname as "Name", pg_catalog.pg_get_userbyid(d.datdba) as "Owner", pg_catalog.pg_encoding_to_char(d.encoding) as "Encoding", d.datcollate as "Collate", d.datctype as "Ctype", d.daticulocale as "ICU Locale", CASE d.datlocprovider WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' END AS "Locale Provider", pg_catalog.array_to_string(d.datacl, E'\n') AS "Access privileges" FROM pg_catalog.pg_database d ORDER BY 1;
----
Name:name|Owner:name|Encoding:name|Collate:text|Ctype:text|ICU Locale:text|Locale Provider:text|Access privileges:text
postgres|postgres|UTF8|C|C.UTF-8|NULL|libc|NULL

SELECT r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolconnlimit, r.rolvaliduntil, ARRAY(SELECT b.rolname FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles b ON (m.roleid = b.oid) WHERE m.member = r.oid) as memberof , r.rolreplication , r.rolbypassrls FROM pg_catalog.pg_roles r WHERE r.rolname !~ '^pg_' ORDER BY 1;
----
rolname:name|rolsuper:bool|rolinherit:bool|rolcreaterole:bool|rolcreatedb:bool|rolcanlogin:bool|rolconnlimit:int4|rolvaliduntil:timestamptz|memberof:_name|rolreplication:bool|rolbypassrls:bool
ann|t|t|t|t|t|-1|NULL|{}|f|t
postgres|t|t|t|t|t|-1|NULL|{}|f|t

SELECT n.nspname as "Schema", p.proname as "Name", pg_catalog.pg_get_function_result(p.oid) as "Result data type", pg_catalog.pg_get_function_arguments(p.oid) as "Argument data types", CASE p.prokind WHEN 'a' THEN 'agg' WHEN 'w' THEN 'window' WHEN 'p' THEN 'proc' ELSE 'func' END as "Type" FROM pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE pg_catalog.pg_function_is_visible(p.oid) AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' ORDER BY 1, 2, 4;
----
Schema:name|Name:name|Result data type:text|Argument data types:text|Type:text

SELECT n.nspname AS "Name", pg_catalog.pg_get_userbyid(n.nspowner) AS "Owner" FROM pg_catalog.pg_namespace n WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1;
----
Name:name|Owner:name
public|pg_database_owner

SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE c.relkind IN ('r','p','v','m','S','f','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2;
----
Schema:name|Name:name|Type:text|Owner:name
public|t|table|postgres
public|u|table|postgres

SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner", c2.relname as "Table" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_catalog.pg_class c2 ON i.indrelid = c2.oid WHERE c.relkind IN ('i','I','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2;
----
Schema:name|Name:name|Type:text|Owner:name|Table:name
public|t_pkey|index|postgres|t
public|u_pkey|index|postgres|u

select o.n, p.partstrat, pg_catalog.count(i.inhparent) from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace) cross join lateral (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) as o(n) left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid) left join pg_catalog.pg_inherits as i on (c.oid = i.inhparent) where c.relname = 't' and o.n is not null group by 1, 2 order by 1 asc limit 1;
----
n:int4|partstrat:char|count:int8
2|NULL|0
