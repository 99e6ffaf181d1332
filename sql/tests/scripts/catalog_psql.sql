# The queries of psql 15's describe commands.
create table t (a int primary key, b text not null default 'x', c numeric(10,2));
create table u (id bigint primary key, a int, v varchar(5)[]);
----
CREATE TABLE
CREATE TABLE

# \d
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE c.relkind IN ('r','p','v','m','S','f','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2;
----
Schema:name|Name:name|Type:text|Owner:name
public|t|table|postgres
public|u|table|postgres

# \dt
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE c.relkind IN ('r','p','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2;
----
Schema:name|Name:name|Type:text|Owner:name
public|t|table|postgres
public|u|table|postgres

# \di
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner", c2.relname as "Table" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_catalog.pg_class c2 ON i.indrelid = c2.oid WHERE c.relkind IN ('i','I','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2;
----
Schema:name|Name:name|Type:text|Owner:name|Table:name
public|t_pkey|index|postgres|t
public|u_pkey|index|postgres|u

# \d t
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

SELECT pol.polname, pol.polpermissive, CASE WHEN pol.polroles = '{0}' THEN NULL ELSE pg_catalog.array_to_string(array(select rolname from pg_catalog.pg_roles where oid = any (pol.polroles) order by 1),',') END, pg_catalog.pg_get_expr(pol.polqual, pol.polrelid), pg_catalog.pg_get_expr(pol.polwithcheck, pol.polrelid), CASE pol.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' END AS cmd FROM pg_catalog.pg_policy pol WHERE pol.polrelid = '16384' ORDER BY 1;
----
polname:name|polpermissive:bool|array_to_string:text|pg_get_expr:text|pg_get_expr:text|cmd:text

SELECT oid, stxrelid::pg_catalog.regclass, stxnamespace::pg_catalog.regnamespace::pg_catalog.text AS nsp, stxname, pg_catalog.pg_get_statisticsobjdef_columns(oid) AS columns, 'd' = any(stxkind) AS ndist_enabled, 'f' = any(stxkind) AS deps_enabled, 'm' = any(stxkind) AS mcv_enabled, stxstattarget FROM pg_catalog.pg_statistic_ext WHERE stxrelid = '16384' ORDER BY nsp, stxname;
----
oid:oid|stxrelid:regclass|nsp:text|stxname:name|columns:text|ndist_enabled:bool|deps_enabled:bool|mcv_enabled:bool|stxstattarget:int4

SELECT pubname , NULL , NULL FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_namespace pn ON p.oid = pn.pnpubid JOIN pg_catalog.pg_class pc ON pc.relnamespace = pn.pnnspid WHERE pc.oid ='16384' and pg_catalog.pg_relation_is_publishable('16384') UNION SELECT pubname , pg_get_expr(pr.prqual, c.oid) , (CASE WHEN pr.prattrs IS NOT NULL THEN (SELECT string_agg(attname, ', ') FROM pg_catalog.generate_series(0, pg_catalog.array_upper(pr.prattrs::pg_catalog.int2[], 1)) s, pg_catalog.pg_attribute WHERE attrelid = pr.prrelid AND attnum = prattrs[s]) ELSE NULL END) FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel pr ON p.oid = pr.prpubid JOIN pg_catalog.pg_class c ON c.oid = pr.prrelid WHERE pr.prrelid = '16384' UNION SELECT pubname , NULL , NULL FROM pg_catalog.pg_publication p WHERE p.puballtables AND pg_catalog.pg_relation_is_publishable('16384') ORDER BY 1;
----
pubname:name|?column?:text|?column?:text

SELECT c.oid::pg_catalog.regclass FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i WHERE c.oid = i.inhparent AND i.inhrelid = '16384' AND c.relkind != 'p' AND c.relkind != 'I' ORDER BY inhseqno;
----
oid:regclass

SELECT c.oid::pg_catalog.regclass, c.relkind, inhdetachpending, pg_catalog.pg_get_expr(c.relpartbound, c.oid) FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i WHERE c.oid = i.inhrelid AND i.inhparent = '16384' ORDER BY pg_catalog.pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT', c.oid::pg_catalog.regclass::pg_catalog.text;
----
oid:regclass|relkind:char|inhdetachpending:bool|pg_get_expr:text

# \d+ t
SELECT c.relchecks, c.relkind, c.relhasindex, c.relhasrules, c.relhastriggers, c.relrowsecurity, c.relforcerowsecurity, false AS relhasoids, c.relispartition, pg_catalog.array_to_string(c.reloptions || array(select 'toast.' || x from pg_catalog.unnest(tc.reloptions) x), ', ') , c.reltablespace, CASE WHEN c.reloftype = 0 THEN '' ELSE c.reloftype::pg_catalog.regtype::pg_catalog.text END, c.relpersistence, c.relreplident, am.amname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_class tc ON (c.reltoastrelid = tc.oid) LEFT JOIN pg_catalog.pg_am am ON (c.relam = am.oid) WHERE c.oid = '16384';
----
relchecks:int2|relkind:char|relhasindex:bool|relhasrules:bool|relhastriggers:bool|relrowsecurity:bool|relforcerowsecurity:bool|relhasoids:bool|relispartition:bool|array_to_string:text|reltablespace:oid|reloftype:text|relpersistence:char|relreplident:char|amname:name
0|r|t|f|f|f|f|f|f||0||p|d|heap

SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef), a.attnotnull, (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type t WHERE c.oid = a.attcollation AND t.oid = a.atttypid AND a.attcollation <> t.typcollation) AS attcollation, a.attidentity, a.attgenerated, a.attstorage, a.attcompression AS attcompression, CASE WHEN a.attstattarget=-1 THEN NULL ELSE a.attstattarget END AS attstattarget, pg_catalog.col_description(a.attrelid, a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = '16384' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
----
attname:name|format_type:text|pg_get_expr:text|attnotnull:bool|attcollation:name|attidentity:char|attgenerated:char|attstorage:char|attcompression:char|attstattarget:int4|col_description:text
a|integer|NULL|t|NULL|||p||NULL|NULL
b|text|'x'::text|t|NULL|||x||NULL|NULL
c|numeric(10,2)|NULL|f|NULL|||m||NULL|NULL

# \l
SELECT d.datname as "Name", pg_catalog.pg_get_userbyid(d.datdba) as "Owner", pg_catalog.pg_encoding_to_char(d.encoding) as "Encoding", d.datcollate as "Collate", d.datctype as "Ctype", d.daticulocale as "ICU Locale", CASE d.datlocprovider WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' END AS "Locale Provider", pg_catalog.array_to_string(d.datacl, E'\n') AS "Access privileges" FROM pg_catalog.pg_database d ORDER BY 1;
----
Name:name|Owner:name|Encoding:name|Collate:text|Ctype:text|ICU Locale:text|Locale Provider:text|Access privileges:text
postgres|postgres|UTF8|C|C.UTF-8|NULL|libc|NULL

# \dn
SELECT n.nspname AS "Name", pg_catalog.pg_get_userbyid(n.nspowner) AS "Owner" FROM pg_catalog.pg_namespace n WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1;
----
Name:name|Owner:name
public|pg_database_owner

# \df
SELECT n.nspname as "Schema", p.proname as "Name", pg_catalog.pg_get_function_result(p.oid) as "Result data type", pg_catalog.pg_get_function_arguments(p.oid) as "Argument data types", CASE p.prokind WHEN 'a' THEN 'agg' WHEN 'w' THEN 'window' WHEN 'p' THEN 'proc' ELSE 'func' END as "Type" FROM pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE pg_catalog.pg_function_is_visible(p.oid) AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' ORDER BY 1, 2, 4;
----
Schema:name|Name:name|Result data type:text|Argument data types:text|Type:text

# \dT
SELECT n.nspname as "Schema", pg_catalog.format_type(t.oid, NULL) AS "Name", pg_catalog.obj_description(t.oid, 'pg_type') as "Description" FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE (t.typrelid = 0 OR (SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid)) AND NOT EXISTS(SELECT 1 FROM pg_catalog.pg_type el WHERE el.oid = t.typelem AND el.typarray = t.oid) AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_type_is_visible(t.oid) ORDER BY 1, 2;
----
Schema:name|Name:text|Description:text

# \du
SELECT r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolconnlimit, r.rolvaliduntil, ARRAY(SELECT b.rolname FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles b ON (m.roleid = b.oid) WHERE m.member = r.oid) as memberof , r.rolreplication , r.rolbypassrls FROM pg_catalog.pg_roles r WHERE r.rolname !~ '^pg_' ORDER BY 1;
----
rolname:name|rolsuper:bool|rolinherit:bool|rolcreaterole:bool|rolcreatedb:bool|rolcanlogin:bool|rolconnlimit:int4|rolvaliduntil:timestamptz|memberof:_name|rolreplication:bool|rolbypassrls:bool
ann|t|t|t|t|t|-1|NULL|{}|f|t
postgres|t|t|t|t|t|-1|NULL|{}|f|t

# \dv
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('v','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2;
----
Schema:name|Name:name|Type:text|Owner:name

# \ds
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('S','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2;
----
Schema:name|Name:name|Type:text|Owner:name

# \dn+
SELECT n.nspname AS "Name", pg_catalog.pg_get_userbyid(n.nspowner) AS "Owner", pg_catalog.array_to_string(n.nspacl, E'\n') AS "Access privileges", pg_catalog.obj_description(n.oid, 'pg_namespace') AS "Description" FROM pg_catalog.pg_namespace n WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1;
----
Name:name|Owner:name|Access privileges:text|Description:text
public|pg_database_owner|NULL|standard public schema

# \dt+
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner", CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 't' THEN 'temporary' WHEN 'u' THEN 'unlogged' END as "Persistence", am.amname as "Access method", pg_catalog.pg_size_pretty(pg_catalog.pg_table_size(c.oid)) as "Size", pg_catalog.obj_description(c.oid, 'pg_class') as "Description" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE c.relkind IN ('r','p','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2;
----
Schema:name|Name:name|Type:text|Owner:name|Persistence:text|Access method:name|Size:text|Description:text
public|t|table|postgres|permanent|heap|0 bytes|NULL
public|u|table|postgres|permanent|heap|0 bytes|NULL

# \dT+
SELECT n.nspname as "Schema", pg_catalog.format_type(t.oid, NULL) AS "Name", t.typname AS "Internal name", CASE WHEN t.typrelid != 0 THEN CAST('tuple' AS pg_catalog.text) WHEN t.typlen < 0 THEN CAST('var' AS pg_catalog.text) ELSE CAST(t.typlen AS pg_catalog.text) END AS "Size", pg_catalog.array_to_string( ARRAY( SELECT e.enumlabel FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder ), E'\n' ) AS "Elements", pg_catalog.pg_get_userbyid(t.typowner) AS "Owner", pg_catalog.array_to_string(t.typacl, E'\n') AS "Access privileges", pg_catalog.obj_description(t.oid, 'pg_type') as "Description" FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE (t.typrelid = 0 OR (SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid)) AND NOT EXISTS(SELECT 1 FROM pg_catalog.pg_type el WHERE el.oid = t.typelem AND el.typarray = t.oid) AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_type_is_visible(t.oid) ORDER BY 1, 2;
----
Schema:name|Name:text|Internal name:name|Size:text|Elements:text|Owner:name|Access privileges:text|Description:text

# \d t_pkey
SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname OPERATOR(pg_catalog.~) '^(t_pkey)$' COLLATE pg_catalog.default AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3;
----
oid:oid|nspname:name|relname:name
16385|public|t_pkey

SELECT c.relchecks, c.relkind, c.relhasindex, c.relhasrules, c.relhastriggers, c.relrowsecurity, c.relforcerowsecurity, false AS relhasoids, c.relispartition, '', c.reltablespace, CASE WHEN c.reloftype = 0 THEN '' ELSE c.reloftype::pg_catalog.regtype::pg_catalog.text END, c.relpersistence, c.relreplident, am.amname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_class tc ON (c.reltoastrelid = tc.oid) LEFT JOIN pg_catalog.pg_am am ON (c.relam = am.oid) WHERE c.oid = '16385';
----
relchecks:int2|relkind:char|relhasindex:bool|relhasrules:bool|relhastriggers:bool|relrowsecurity:bool|relforcerowsecurity:bool|relhasoids:bool|relispartition:bool|?column?:text|reltablespace:oid|reloftype:text|relpersistence:char|relreplident:char|amname:name
0|i|f|f|f|f|f|f|f||0||p|n|btree

SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnum <= (SELECT i.indnkeyatts FROM pg_catalog.pg_index i WHERE i.indexrelid = '16385') THEN 'yes' ELSE 'no' END AS is_key, pg_catalog.pg_get_indexdef(a.attrelid, a.attnum, TRUE) AS indexdef FROM pg_catalog.pg_attribute a WHERE a.attrelid = '16385' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
----
attname:name|format_type:text|is_key:text|indexdef:text
a|integer|yes|a

SELECT i.indisunique, i.indisprimary, i.indisclustered, i.indisvalid, (NOT i.indimmediate) AND EXISTS (SELECT 1 FROM pg_catalog.pg_constraint WHERE conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p','u','x') AND condeferrable) AS condeferrable, (NOT i.indimmediate) AND EXISTS (SELECT 1 FROM pg_catalog.pg_constraint WHERE conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p','u','x') AND condeferred) AS condeferred, i.indisreplident, i.indnullsnotdistinct, a.amname, c2.relname, pg_catalog.pg_get_expr(i.indpred, i.indrelid, true) FROM pg_catalog.pg_index i, pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_am a WHERE i.indexrelid = c.oid AND c.oid = '16385' AND c.relam = a.oid AND i.indrelid = c2.oid;
----
indisunique:bool|indisprimary:bool|indisclustered:bool|indisvalid:bool|condeferrable:bool|condeferred:bool|indisreplident:bool|indnullsnotdistinct:bool|amname:name|relname:name|pg_get_expr:text
t|t|f|t|f|f|f|f|btree|t|NULL

# \dp
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' END as "Type", pg_catalog.array_to_string(c.relacl, E'\n') AS "Access privileges", pg_catalog.array_to_string(ARRAY( SELECT attname || E':\n ' || pg_catalog.array_to_string(attacl, E'\n ') FROM pg_catalog.pg_attribute a WHERE attrelid = c.oid AND NOT attisdropped AND attacl IS NOT NULL ), E'\n') AS "Column privileges", pg_catalog.array_to_string(ARRAY( SELECT polname || CASE WHEN NOT polpermissive THEN E' (RESTRICTIVE)' ELSE '' END || CASE WHEN polcmd != '*' THEN E' (' || polcmd::pg_catalog.text || E'):' ELSE E':' END || CASE WHEN polqual IS NOT NULL THEN E'\n (u): ' || pg_catalog.pg_get_expr(polqual, polrelid) ELSE E'' END || CASE WHEN polwithcheck IS NOT NULL THEN E'\n (c): ' || pg_catalog.pg_get_expr(polwithcheck, polrelid) ELSE E'' END || CASE WHEN polroles <> '{0}' THEN E'\n to: ' || pg_catalog.array_to_string( ARRAY( SELECT rolname FROM pg_catalog.pg_roles WHERE oid = ANY (polroles) ORDER BY 1 ), E', ') ELSE E'' END FROM pg_catalog.pg_policy pol WHERE polrelid = c.oid), E'\n') AS "Policies" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r','v','m','S','f','p') AND n.nspname !~ '^pg_' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1, 2;
----
Schema:name|Name:name|Type:text|Access privileges:text|Column privileges:text|Policies:text
public|t|table|NULL||
public|u|table|NULL||

# \do =
SELECT n.nspname as "Schema", o.oprname AS "Name", CASE WHEN o.oprkind='l' THEN NULL ELSE pg_catalog.format_type(o.oprleft, NULL) END AS "Left arg type", CASE WHEN o.oprkind='r' THEN NULL ELSE pg_catalog.format_type(o.oprright, NULL) END AS "Right arg type", pg_catalog.format_type(o.oprresult, NULL) AS "Result type", coalesce(pg_catalog.obj_description(o.oid, 'pg_operator'), pg_catalog.obj_description(o.oprcode, 'pg_proc')) AS "Description" FROM pg_catalog.pg_operator o LEFT JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace WHERE o.oprname OPERATOR(pg_catalog.~) '^(=)$' COLLATE pg_catalog.default AND pg_catalog.pg_operator_is_visible(o.oid) ORDER BY 1, 2, 3, 4;
----
Schema:name|Name:name|Left arg type:text|Right arg type:text|Result type:text|Description:text
pg_catalog|=|"char"|"char"|boolean|NULL
pg_catalog|=|anyarray|anyarray|boolean|NULL
pg_catalog|=|anyenum|anyenum|boolean|NULL
pg_catalog|=|bigint|bigint|boolean|NULL
pg_catalog|=|bigint|integer|boolean|NULL
pg_catalog|=|bigint|smallint|boolean|NULL
pg_catalog|=|boolean|boolean|boolean|NULL
pg_catalog|=|bytea|bytea|boolean|NULL
pg_catalog|=|character|character|boolean|NULL
pg_catalog|=|cid|cid|boolean|NULL
pg_catalog|=|date|date|boolean|NULL
pg_catalog|=|date|timestamp with time zone|boolean|NULL
pg_catalog|=|date|timestamp without time zone|boolean|NULL
pg_catalog|=|double precision|double precision|boolean|NULL
pg_catalog|=|double precision|real|boolean|NULL
pg_catalog|=|integer|bigint|boolean|NULL
pg_catalog|=|integer|integer|boolean|NULL
pg_catalog|=|integer|smallint|boolean|NULL
pg_catalog|=|interval|interval|boolean|NULL
pg_catalog|=|jsonb|jsonb|boolean|NULL
pg_catalog|=|name|name|boolean|NULL
pg_catalog|=|name|text|boolean|NULL
pg_catalog|=|numeric|numeric|boolean|NULL
pg_catalog|=|oid|oid|boolean|NULL
pg_catalog|=|oidvector|oidvector|boolean|NULL
pg_catalog|=|pg_lsn|pg_lsn|boolean|NULL
pg_catalog|=|real|double precision|boolean|NULL
pg_catalog|=|real|real|boolean|NULL
pg_catalog|=|record|record|boolean|NULL
pg_catalog|=|smallint|bigint|boolean|NULL
pg_catalog|=|smallint|integer|boolean|NULL
pg_catalog|=|smallint|smallint|boolean|NULL
pg_catalog|=|text|name|boolean|NULL
pg_catalog|=|text|text|boolean|NULL
pg_catalog|=|tid|tid|boolean|NULL
pg_catalog|=|time with time zone|time with time zone|boolean|NULL
pg_catalog|=|time without time zone|time without time zone|boolean|NULL
pg_catalog|=|timestamp with time zone|date|boolean|NULL
pg_catalog|=|timestamp with time zone|timestamp with time zone|boolean|NULL
pg_catalog|=|timestamp with time zone|timestamp without time zone|boolean|NULL
pg_catalog|=|timestamp without time zone|date|boolean|NULL
pg_catalog|=|timestamp without time zone|timestamp with time zone|boolean|NULL
pg_catalog|=|timestamp without time zone|timestamp without time zone|boolean|NULL
pg_catalog|=|uuid|uuid|boolean|NULL
pg_catalog|=|xid|integer|boolean|NULL
pg_catalog|=|xid|xid|boolean|NULL
pg_catalog|=|xid8|xid8|boolean|NULL

# \dC
SELECT pg_catalog.format_type(castsource, NULL) AS "Source type", pg_catalog.format_type(casttarget, NULL) AS "Target type", CASE WHEN c.castmethod = 'b' THEN '(binary coercible)' WHEN c.castmethod = 'i' THEN '(with inout)' ELSE p.proname END AS "Function", CASE WHEN c.castcontext = 'e' THEN 'no' WHEN c.castcontext = 'a' THEN 'in assignment' ELSE 'yes' END AS "Implicit?" FROM pg_catalog.pg_cast c LEFT JOIN pg_catalog.pg_proc p ON c.castfunc = p.oid LEFT JOIN pg_catalog.pg_type ts ON c.castsource = ts.oid LEFT JOIN pg_catalog.pg_namespace ns ON ns.oid = ts.typnamespace LEFT JOIN pg_catalog.pg_type tt ON c.casttarget = tt.oid LEFT JOIN pg_catalog.pg_namespace nt ON nt.oid = tt.typnamespace WHERE ( (true AND pg_catalog.pg_type_is_visible(ts.oid) ) OR (true AND pg_catalog.pg_type_is_visible(tt.oid) ) ) ORDER BY 1, 2;
----
Source type:text|Target type:text|Function:name|Implicit?:text
"char"|character|bpchar|in assignment
"char"|character varying|text|in assignment
"char"|integer|int4|no
"char"|text|text|yes
bigint|double precision|float8|yes
bigint|integer|int4|in assignment
bigint|numeric|numeric|yes
bigint|oid|oid|yes
bigint|real|float4|yes
bigint|regclass|oid|yes
bigint|regcollation|oid|yes
bigint|regnamespace|oid|yes
bigint|regoper|oid|yes
bigint|regoperator|oid|yes
bigint|regproc|oid|yes
bigint|regprocedure|oid|yes
bigint|regrole|oid|yes
bigint|regtype|oid|yes
bigint|smallint|int2|in assignment
boolean|character|text|in assignment
boolean|character varying|text|in assignment
boolean|integer|int4|no
boolean|text|text|in assignment
character|"char"|char|in assignment
character|character varying|text|yes
character|name|name|yes
character|text|text|yes
character varying|"char"|char|in assignment
character varying|character|(binary coercible)|yes
character varying|name|name|yes
character varying|regclass|regclass|yes
character varying|text|(binary coercible)|yes
date|timestamp with time zone|timestamptz|yes
date|timestamp without time zone|timestamp|yes
double precision|bigint|int8|in assignment
double precision|integer|int4|in assignment
double precision|numeric|numeric|in assignment
double precision|real|float4|in assignment
double precision|smallint|int2|in assignment
integer|"char"|char|no
integer|bigint|int8|yes
integer|boolean|bool|no
integer|double precision|float8|yes
integer|numeric|numeric|yes
integer|oid|(binary coercible)|yes
integer|real|float4|yes
integer|regclass|(binary coercible)|yes
integer|regcollation|(binary coercible)|yes
integer|regnamespace|(binary coercible)|yes
integer|regoper|(binary coercible)|yes
integer|regoperator|(binary coercible)|yes
integer|regproc|(binary coercible)|yes
integer|regprocedure|(binary coercible)|yes
integer|regrole|(binary coercible)|yes
integer|regtype|(binary coercible)|yes
integer|smallint|int2|in assignment
interval|time without time zone|time|in assignment
json|jsonb|(with inout)|in assignment
jsonb|bigint|int8|no
jsonb|boolean|bool|no
jsonb|double precision|float8|no
jsonb|integer|int4|no
jsonb|json|(with inout)|in assignment
jsonb|numeric|numeric|no
jsonb|real|float4|no
jsonb|smallint|int2|no
name|character|bpchar|in assignment
name|character varying|varchar|in assignment
name|text|text|yes
numeric|bigint|int8|in assignment
numeric|double precision|float8|yes
numeric|integer|int4|in assignment
numeric|real|float4|yes
numeric|smallint|int2|in assignment
oid|bigint|int8|in assignment
oid|integer|(binary coercible)|in assignment
oid|regclass|(binary coercible)|yes
oid|regcollation|(binary coercible)|yes
oid|regnamespace|(binary coercible)|yes
oid|regoper|(binary coercible)|yes
oid|regoperator|(binary coercible)|yes
oid|regproc|(binary coercible)|yes
oid|regprocedure|(binary coercible)|yes
oid|regrole|(binary coercible)|yes
oid|regtype|(binary coercible)|yes
pg_node_tree|text|(binary coercible)|yes
real|bigint|int8|in assignment
real|double precision|float8|yes
real|integer|int4|in assignment
real|numeric|numeric|in assignment
real|smallint|int2|in assignment
regclass|bigint|int8|in assignment
regclass|integer|(binary coercible)|in assignment
regclass|oid|(binary coercible)|yes
regcollation|bigint|int8|in assignment
regcollation|integer|(binary coercible)|in assignment
regcollation|oid|(binary coercible)|yes
regnamespace|bigint|int8|in assignment
regnamespace|integer|(binary coercible)|in assignment
regnamespace|oid|(binary coercible)|yes
regoper|bigint|int8|in assignment
regoper|integer|(binary coercible)|in assignment
regoper|oid|(binary coercible)|yes
regoper|regoperator|(binary coercible)|yes
regoperator|bigint|int8|in assignment
regoperator|integer|(binary coercible)|in assignment
regoperator|oid|(binary coercible)|yes
regoperator|regoper|(binary coercible)|yes
regproc|bigint|int8|in assignment
regproc|integer|(binary coercible)|in assignment
regproc|oid|(binary coercible)|yes
regproc|regprocedure|(binary coercible)|yes
regprocedure|bigint|int8|in assignment
regprocedure|integer|(binary coercible)|in assignment
regprocedure|oid|(binary coercible)|yes
regprocedure|regproc|(binary coercible)|yes
regrole|bigint|int8|in assignment
regrole|integer|(binary coercible)|in assignment
regrole|oid|(binary coercible)|yes
regtype|bigint|int8|in assignment
regtype|integer|(binary coercible)|in assignment
regtype|oid|(binary coercible)|yes
smallint|bigint|int8|yes
smallint|double precision|float8|yes
smallint|integer|int4|yes
smallint|numeric|numeric|yes
smallint|oid|int4|yes
smallint|real|float4|yes
smallint|regclass|int4|yes
smallint|regcollation|int4|yes
smallint|regnamespace|int4|yes
smallint|regoper|int4|yes
smallint|regoperator|int4|yes
smallint|regproc|int4|yes
smallint|regprocedure|int4|yes
smallint|regrole|int4|yes
smallint|regtype|int4|yes
text|"char"|char|in assignment
text|character|(binary coercible)|yes
text|character varying|(binary coercible)|yes
text|name|name|yes
text|regclass|regclass|yes
time with time zone|time without time zone|time|in assignment
time without time zone|interval|interval|yes
time without time zone|time with time zone|timetz|yes
timestamp with time zone|date|date|in assignment
timestamp with time zone|time with time zone|timetz|in assignment
timestamp with time zone|time without time zone|time|in assignment
timestamp with time zone|timestamp without time zone|timestamp|in assignment
timestamp without time zone|date|date|in assignment
timestamp without time zone|time without time zone|time|in assignment
timestamp without time zone|timestamp with time zone|timestamptz|yes
xid8|xid|xid|no

# \db
SELECT spcname AS "Name", pg_catalog.pg_get_userbyid(spcowner) AS "Owner", pg_catalog.pg_tablespace_location(oid) AS "Location" FROM pg_catalog.pg_tablespace ORDER BY 1;
----
Name:name|Owner:name|Location:text
pg_default|postgres|

# \dx
SELECT e.extname AS "Name", e.extversion AS "Version", n.nspname AS "Schema", c.description AS "Description" FROM pg_catalog.pg_extension e LEFT JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace LEFT JOIN pg_catalog.pg_description c ON c.objoid = e.oid AND c.classoid = 'pg_catalog.pg_extension'::pg_catalog.regclass ORDER BY 1;
----
Name:name|Version:text|Schema:name|Description:text

# \dD
SELECT n.nspname as "Schema", t.typname as "Name", pg_catalog.format_type(t.typbasetype, t.typtypmod) as "Type", (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type bt WHERE c.oid = t.typcollation AND bt.oid = t.typbasetype AND t.typcollation <> bt.typcollation) as "Collation", CASE WHEN t.typnotnull THEN 'not null' END as "Nullable", t.typdefault as "Default", pg_catalog.array_to_string(ARRAY( SELECT pg_catalog.pg_get_constraintdef(r.oid, true) FROM pg_catalog.pg_constraint r WHERE t.oid = r.contypid ), ' ') as "Check" FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.typtype = 'd' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_type_is_visible(t.oid) ORDER BY 1, 2;
----
Schema:name|Name:name|Type:text|Collation:name|Nullable:text|Default:text|Check:text

# \dO
SELECT n.nspname AS "Schema", c.collname AS "Name", c.collcollate AS "Collate", c.collctype AS "Ctype", c.colliculocale AS "ICU Locale", CASE c.collprovider WHEN 'd' THEN 'default' WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' END AS "Provider", CASE WHEN c.collisdeterministic THEN 'yes' ELSE 'no' END AS "Deterministic?" FROM pg_catalog.pg_collation c, pg_catalog.pg_namespace n WHERE n.oid = c.collnamespace AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND c.collencoding IN (-1, pg_catalog.pg_char_to_encoding(pg_catalog.getdatabaseencoding())) AND pg_catalog.pg_collation_is_visible(c.oid) ORDER BY 1, 2;
----
Schema:name|Name:name|Collate:text|Ctype:text|ICU Locale:text|Provider:text|Deterministic?:text

# \sf now
SELECT 'now'::pg_catalog.regproc::pg_catalog.oid;
----
oid:oid
1299

SELECT pg_catalog.pg_get_functiondef(1299);
----
ERROR 0A000: the definition of function now is not supported yet

# \dRp
SELECT pubname AS "Name", pg_catalog.pg_get_userbyid(pubowner) AS "Owner", puballtables AS "All tables", pubinsert AS "Inserts", pubupdate AS "Updates", pubdelete AS "Deletes", pubtruncate AS "Truncates", pubviaroot AS "Via root" FROM pg_catalog.pg_publication ORDER BY 1;
----
Name:name|Owner:name|All tables:bool|Inserts:bool|Updates:bool|Deletes:bool|Truncates:bool|Via root:bool

# \df now
SELECT n.nspname as "Schema", p.proname as "Name", pg_catalog.pg_get_function_result(p.oid) as "Result data type", pg_catalog.pg_get_function_arguments(p.oid) as "Argument data types", CASE p.prokind WHEN 'a' THEN 'agg' WHEN 'w' THEN 'window' WHEN 'p' THEN 'proc' ELSE 'func' END as "Type" FROM pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE p.proname OPERATOR(pg_catalog.~) '^(now)$' COLLATE pg_catalog.default AND pg_catalog.pg_function_is_visible(p.oid) ORDER BY 1, 2, 4;
----
Schema:name|Name:name|Result data type:text|Argument data types:text|Type:text
pg_catalog|now|timestamp with time zone||func

# \dL
SELECT l.lanname AS "Name", pg_catalog.pg_get_userbyid(l.lanowner) as "Owner", l.lanpltrusted AS "Trusted", d.description AS "Description" FROM pg_catalog.pg_language l LEFT JOIN pg_catalog.pg_description d ON d.classoid = l.tableoid AND d.objoid = l.oid AND d.objsubid = 0 WHERE l.lanplcallfoid != 0 ORDER BY 1;
----
Name:name|Owner:name|Trusted:bool|Description:text

# \det
SELECT n.nspname AS "Schema", c.relname AS "Table", s.srvname AS "Server" FROM pg_catalog.pg_foreign_table ft INNER JOIN pg_catalog.pg_class c ON c.oid = ft.ftrelid INNER JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace INNER JOIN pg_catalog.pg_foreign_server s ON s.oid = ft.ftserver WHERE pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1, 2;
----
Schema:name|Table:name|Server:name

# \dE
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('f','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2;
----
Schema:name|Name:name|Type:text|Owner:name

# \dA
SELECT amname AS "Name", CASE amtype WHEN 'i' THEN 'Index' WHEN 't' THEN 'Table' END AS "Type" FROM pg_catalog.pg_am ORDER BY 1;
----
Name:name|Type:text
btree|Index
heap|Table

# \dy
SELECT evtname as "Name", evtevent as "Event", pg_catalog.pg_get_userbyid(e.evtowner) as "Owner", case evtenabled when 'O' then 'enabled' when 'R' then 'replica' when 'A' then 'always' when 'D' then 'disabled' end as "Enabled", e.evtfoid::pg_catalog.regproc as "Function", pg_catalog.array_to_string(array(select x from pg_catalog.unnest(evttags) as t(x)), ', ') as "Tags" FROM pg_catalog.pg_event_trigger e ORDER BY 1;
----
Name:name|Event:name|Owner:name|Enabled:text|Function:regproc|Tags:text

# \dF
SELECT n.nspname as "Schema", c.cfgname as "Name", pg_catalog.obj_description(c.oid, 'pg_ts_config') as "Description" FROM pg_catalog.pg_ts_config c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.cfgnamespace WHERE pg_catalog.pg_ts_config_is_visible(c.oid) ORDER BY 1, 2;
----
Schema:name|Name:name|Description:text

# \dFd
SELECT n.nspname as "Schema", d.dictname as "Name", pg_catalog.obj_description(d.oid, 'pg_ts_dict') as "Description" FROM pg_catalog.pg_ts_dict d LEFT JOIN pg_catalog.pg_namespace n ON n.oid = d.dictnamespace WHERE pg_catalog.pg_ts_dict_is_visible(d.oid) ORDER BY 1, 2;
----
Schema:name|Name:name|Description:text

# \dd
SELECT DISTINCT tt.nspname AS "Schema", tt.name AS "Name", tt.object AS "Object", d.description AS "Description" FROM ( SELECT pgc.oid as oid, pgc.tableoid AS tableoid, n.nspname as nspname, CAST(pgc.conname AS pg_catalog.text) as name, CAST('table constraint' AS pg_catalog.text) as object FROM pg_catalog.pg_constraint pgc JOIN pg_catalog.pg_class c ON c.oid = pgc.conrelid LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) UNION ALL SELECT pgc.oid as oid, pgc.tableoid AS tableoid, n.nspname as nspname, CAST(pgc.conname AS pg_catalog.text) as name, CAST('domain constraint' AS pg_catalog.text) as object FROM pg_catalog.pg_constraint pgc JOIN pg_catalog.pg_type t ON t.oid = pgc.contypid LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_type_is_visible(t.oid) UNION ALL SELECT o.oid as oid, o.tableoid as tableoid, n.nspname as nspname, CAST(o.opcname AS pg_catalog.text) as name, CAST('operator class' AS pg_catalog.text) as object FROM pg_catalog.pg_opclass o JOIN pg_catalog.pg_am am ON o.opcmethod = am.oid JOIN pg_catalog.pg_namespace n ON n.oid = o.opcnamespace AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_opclass_is_visible(o.oid) UNION ALL SELECT opf.oid as oid, opf.tableoid as tableoid, n.nspname as nspname, CAST(opf.opfname AS pg_catalog.text) AS name, CAST('operator family' AS pg_catalog.text) as object FROM pg_catalog.pg_opfamily opf JOIN pg_catalog.pg_am am ON opf.opfmethod = am.oid JOIN pg_catalog.pg_namespace n ON opf.opfnamespace = n.oid AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_opfamily_is_visible(opf.oid) UNION ALL SELECT r.oid as oid, r.tableoid as tableoid, n.nspname as nspname, CAST(r.rulename AS pg_catalog.text) as name, CAST('rule' AS pg_catalog.text) as object FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE r.rulename != '_RETURN' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) UNION ALL SELECT t.oid as oid, t.tableoid as tableoid, n.nspname as nspname, CAST(t.tgname AS pg_catalog.text) as name, CAST('trigger' AS pg_catalog.text) as object FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ) AS tt JOIN pg_catalog.pg_description d ON (tt.oid = d.objoid AND tt.tableoid = d.classoid AND d.objsubid = 0) ORDER BY 1, 2, 3;
----
Schema:name|Name:text|Object:text|Description:text

# \ddp
SELECT pg_catalog.pg_get_userbyid(d.defaclrole) AS "Owner", n.nspname AS "Schema", CASE d.defaclobjtype WHEN 'r' THEN 'table' WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'function' WHEN 'T' THEN 'type' WHEN 'n' THEN 'schema' END AS "Type", pg_catalog.array_to_string(d.defaclacl, E'\n') AS "Access privileges" FROM pg_catalog.pg_default_acl d LEFT JOIN pg_catalog.pg_namespace n ON n.oid = d.defaclnamespace ORDER BY 1, 2, 3;
----
Owner:name|Schema:name|Type:text|Access privileges:text

# \drds
SELECT rolname AS "Role", datname AS "Database", pg_catalog.array_to_string(setconfig, E'\n') AS "Settings" FROM pg_catalog.pg_db_role_setting s LEFT JOIN pg_catalog.pg_database d ON d.oid = setdatabase LEFT JOIN pg_catalog.pg_roles r ON r.oid = setrole ORDER BY 1, 2;
----
Role:name|Database:name|Settings:text

# \dconfig
SELECT s.name AS "Parameter", pg_catalog.current_setting(s.name) AS "Value" FROM pg_catalog.pg_settings s WHERE s.source <> 'default' AND s.setting IS DISTINCT FROM s.boot_val AND s.name NOT IN ('cortado.session_token', 'port') ORDER BY 1;
----
Parameter:text|Value:text

# \da count
SELECT n.nspname as "Schema", p.proname AS "Name", pg_catalog.format_type(p.prorettype, NULL) AS "Result data type", CASE WHEN p.pronargs = 0 THEN CAST('*' AS pg_catalog.text) ELSE pg_catalog.pg_get_function_arguments(p.oid) END AS "Argument data types", pg_catalog.obj_description(p.oid, 'pg_proc') as "Description" FROM pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE p.prokind = 'a' AND p.proname OPERATOR(pg_catalog.~) '^(count)$' COLLATE pg_catalog.default AND pg_catalog.pg_function_is_visible(p.oid) ORDER BY 1, 2, 4;
----
Schema:name|Name:name|Result data type:text|Argument data types:text|Description:text
pg_catalog|count|bigint|"any"|NULL
pg_catalog|count|bigint|*|NULL

# \dAc
SELECT am.amname AS "AM", pg_catalog.format_type(c.opcintype, NULL) AS "Input type", CASE WHEN c.opckeytype <> 0 AND c.opckeytype <> c.opcintype THEN pg_catalog.format_type(c.opckeytype, NULL) ELSE NULL END AS "Storage type", CASE WHEN pg_catalog.pg_opclass_is_visible(c.oid) THEN pg_catalog.format('%I', c.opcname) ELSE pg_catalog.format('%I.%I', n.nspname, c.opcname) END AS "Operator class", (CASE WHEN c.opcdefault THEN 'yes' ELSE 'no' END) AS "Default?" FROM pg_catalog.pg_opclass c LEFT JOIN pg_catalog.pg_am am on am.oid = c.opcmethod LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.opcnamespace LEFT JOIN pg_catalog.pg_type t ON t.oid = c.opcintype LEFT JOIN pg_catalog.pg_namespace tn ON tn.oid = t.typnamespace ORDER BY 1, 2, 4;
----
AM:name|Input type:text|Storage type:text|Operator class:text|Default?:text
btree|"char"|NULL|char_ops|yes
btree|anyarray|NULL|array_ops|yes
btree|anyenum|NULL|enum_ops|yes
btree|anymultirange|NULL|multirange_ops|yes
btree|anyrange|NULL|range_ops|yes
btree|bigint|NULL|int8_ops|yes
btree|boolean|NULL|bool_ops|yes
btree|bytea|NULL|bytea_ops|yes
btree|character|NULL|bpchar_ops|yes
btree|character|NULL|bpchar_pattern_ops|no
btree|date|NULL|date_ops|yes
btree|double precision|NULL|float8_ops|yes
btree|integer|NULL|int4_ops|yes
btree|interval|NULL|interval_ops|yes
btree|jsonb|NULL|jsonb_ops|yes
btree|name|cstring|name_ops|yes
btree|numeric|NULL|numeric_ops|yes
btree|oid|NULL|oid_ops|yes
btree|oidvector|NULL|oidvector_ops|yes
btree|pg_lsn|NULL|pg_lsn_ops|yes
btree|real|NULL|float4_ops|yes
btree|record|NULL|record_image_ops|no
btree|record|NULL|record_ops|yes
btree|smallint|NULL|int2_ops|yes
btree|text|NULL|text_ops|yes
btree|text|NULL|text_pattern_ops|no
btree|text|NULL|varchar_ops|no
btree|text|NULL|varchar_pattern_ops|no
btree|tid|NULL|tid_ops|yes
btree|time with time zone|NULL|timetz_ops|yes
btree|time without time zone|NULL|time_ops|yes
btree|timestamp with time zone|NULL|timestamptz_ops|yes
btree|timestamp without time zone|NULL|timestamp_ops|yes
btree|uuid|NULL|uuid_ops|yes
btree|xid8|NULL|xid8_ops|yes
