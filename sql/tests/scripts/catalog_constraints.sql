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
CREATE TABLE
CREATE TABLE
CREATE INDEX
CREATE INDEX

select conname, contype, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true), conkey, confkey, confupdtype,
confdeltype, confmatchtype, condeferrable, confrelid::regclass, conindid::regclass
from pg_constraint where conrelid in ('p'::regclass, 'c'::regclass) order by conrelid::regclass::text, conname;
----
conname:name|contype:char|pg_get_constraintdef:text|pg_get_constraintdef:text|conkey:_int2|confkey:_int2|confupdtype:char|confdeltype:char|confmatchtype:char|condeferrable:bool|confrelid:regclass|conindid:regclass
big|c|CHECK (((n < 100) OR (a IS NULL)))|CHECK (n < 100 OR a IS NULL)|{4,2}|NULL| | | |f|-|-
c_a_n_key|u|UNIQUE (a, n)|UNIQUE (a, n)|{2,4}|NULL| | | |f|-|c_a_n_key
c_b_fkey|f|FOREIGN KEY (b) REFERENCES p(b) DEFERRABLE|FOREIGN KEY (b) REFERENCES p(b) DEFERRABLE|{3}|{2}|a|a|s|t|p|p_b_key
c_n_check|c|CHECK ((n > 0))|CHECK (n > 0)|{4}|NULL| | | |f|-|-
c_p|f|FOREIGN KEY (a, b) REFERENCES p(a, b) MATCH FULL ON UPDATE CASCADE ON DELETE SET NULL|FOREIGN KEY (a, b) REFERENCES p(a, b) MATCH FULL ON UPDATE CASCADE ON DELETE SET NULL|{2,3}|{1,2}|c|n|f|f|p|p_pkey
c_pkey|p|PRIMARY KEY (id)|PRIMARY KEY (id)|{1}|NULL| | | |f|-|c_pkey
p_b_key|u|UNIQUE (b)|UNIQUE (b)|{2}|NULL| | | |f|-|p_b_key
p_pkey|p|PRIMARY KEY (a, b)|PRIMARY KEY (a, b)|{1,2}|NULL| | | |f|-|p_pkey

select indexrelid::regclass, indnatts, indnkeyatts, indisunique, indisprimary, indkey, indoption,
pg_get_expr(indexprs, indrelid), pg_get_expr(indpred, indrelid), pg_get_indexdef(indexrelid)
from pg_index where indrelid in ('p'::regclass, 'c'::regclass) order by 1::text;
----
indexrelid:regclass|indnatts:int2|indnkeyatts:int2|indisunique:bool|indisprimary:bool|indkey:int2vector|indoption:int2vector|pg_get_expr:text|pg_get_expr:text|pg_get_indexdef:text
p_pkey|2|2|t|t|1 2|0 0|NULL|NULL|CREATE UNIQUE INDEX p_pkey ON public.p USING btree (a, b)
p_b_key|1|1|t|f|2|0|NULL|NULL|CREATE UNIQUE INDEX p_b_key ON public.p USING btree (b)
c_pkey|1|1|t|t|1|0|NULL|NULL|CREATE UNIQUE INDEX c_pkey ON public.c USING btree (id)
c_a_n_key|2|2|t|f|2 4|0 0|NULL|NULL|CREATE UNIQUE INDEX c_a_n_key ON public.c USING btree (a, n)
c_n|3|2|f|f|4 0 2|3 2|lower(b)|(n > 5)|CREATE INDEX c_n ON public.c USING btree (n DESC, lower(b) NULLS FIRST) INCLUDE (a) WHERE (n > 5)
c_d|1|1|t|f|6|1|NULL|NULL|CREATE UNIQUE INDEX c_d ON public.c USING btree (d DESC NULLS LAST)

select a.attrelid::regclass, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), pg_get_indexdef(a.attrelid,
a.attnum, true) from pg_attribute a where a.attrelid in ('c_n'::regclass, 'c_d'::regclass) order by 1::text, 2;
----
attrelid:regclass|attnum:int2|attname:name|format_type:text|pg_get_indexdef:text
c_n|1|n|integer|n
c_d|1|d|integer|d
c_n|2|lower|text|lower(b)
c_n|3|a|integer|a

select attname, atthasdef, attgenerated, pg_get_expr(d.adbin, d.adrelid) from pg_attribute a left join pg_attrdef d on
d.adrelid = a.attrelid and d.adnum = a.attnum where a.attrelid = 'c'::regclass and a.attnum > 0 order by a.attnum;
select column_name, column_default, is_generated, generation_expression from information_schema.columns where table_name = 'c' order by ordinal_position;
select relname, relchecks, relhasindex, relhastriggers from pg_class where relname in ('p', 'c') order by 1;
select schemaname, tablename, indexname, indexdef from pg_indexes where tablename in ('p', 'c') order by indexname;
----
attname:name|atthasdef:bool|attgenerated:char|pg_get_expr:text
id|f||NULL
a|f||NULL
b|f||NULL
n|f||NULL
g|t|s|(n * 2)
d|t||(1 + 2)
column_name:name|column_default:varchar|is_generated:varchar|generation_expression:varchar
id|NULL|NEVER|NULL
a|NULL|NEVER|NULL
b|NULL|NEVER|NULL
n|NULL|NEVER|NULL
g|NULL|ALWAYS|(n * 2)
d|(1 + 2)|NEVER|NULL
relname:name|relchecks:int2|relhasindex:bool|relhastriggers:bool
c|2|t|t
p|0|t|t
schemaname:name|tablename:name|indexname:name|indexdef:text
public|c|c_a_n_key|CREATE UNIQUE INDEX c_a_n_key ON public.c USING btree (a, n)
public|c|c_d|CREATE UNIQUE INDEX c_d ON public.c USING btree (d DESC NULLS LAST)
public|c|c_n|CREATE INDEX c_n ON public.c USING btree (n DESC, lower(b) NULLS FIRST) INCLUDE (a) WHERE (n > 5)
public|c|c_pkey|CREATE UNIQUE INDEX c_pkey ON public.c USING btree (id)
public|p|p_b_key|CREATE UNIQUE INDEX p_b_key ON public.p USING btree (b)
public|p|p_pkey|CREATE UNIQUE INDEX p_pkey ON public.p USING btree (a, b)

select constraint_name, table_name, constraint_type, is_deferrable from information_schema.table_constraints where
table_name in ('p', 'c') and constraint_name not like '%not_null' order by 1;
select constraint_name, table_name, column_name, ordinal_position, position_in_unique_constraint from
information_schema.key_column_usage where table_name in ('p', 'c') order by 1, 4;
select constraint_name, table_name, column_name from information_schema.constraint_column_usage where table_name = 'p'
order by 1, 3;
select constraint_name, unique_constraint_name, match_option, update_rule, delete_rule from
information_schema.referential_constraints order by 1;
----
constraint_name:name|table_name:name|constraint_type:varchar|is_deferrable:varchar
big|c|CHECK|NO
c_a_n_key|c|UNIQUE|NO
c_b_fkey|c|FOREIGN KEY|YES
c_n_check|c|CHECK|NO
c_p|c|FOREIGN KEY|NO
c_pkey|c|PRIMARY KEY|NO
p_b_key|p|UNIQUE|NO
p_pkey|p|PRIMARY KEY|NO
constraint_name:name|table_name:name|column_name:name|ordinal_position:int4|position_in_unique_constraint:int4
c_a_n_key|c|a|1|NULL
c_a_n_key|c|n|2|NULL
c_b_fkey|c|b|1|1
c_p|c|a|1|1
c_p|c|b|2|2
c_pkey|c|id|1|NULL
p_b_key|p|b|1|NULL
p_pkey|p|a|1|NULL
p_pkey|p|b|2|NULL
constraint_name:name|table_name:name|column_name:name
c_b_fkey|p|b
c_p|p|a
c_p|p|b
p_b_key|p|b
p_pkey|p|a
p_pkey|p|b
constraint_name:name|unique_constraint_name:name|match_option:varchar|update_rule:varchar|delete_rule:varchar
c_b_fkey|p_b_key|NONE|NO ACTION|NO ACTION
c_p|p_pkey|FULL|CASCADE|SET NULL

# Defaults as PostgreSQL shows them.
create table shown (a varchar(30) default 'none', b text default 'x''y', c int default -1, d numeric(10,2) default -1.5, e date default '2020-01-01', f timestamptz default current_timestamp, g bool default true, h int default '7', i char(3) default 'ab', j jsonb default '{}', l bigint default 5, n int[] default '{}', q "char" default 'x', s date default CURRENT_DATE, w numeric default 10, x name default current_user, y bool default 'f');
select a.attname, pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum where d.adrelid = 'shown'::regclass order by a.attnum;
----
CREATE TABLE
attname:name|pg_get_expr:text
a|'none'::character varying
b|'x''y'::text
c|'-1'::integer
d|'-1.5'::numeric
e|'2020-01-01'::date
f|CURRENT_TIMESTAMP
g|true
h|7
i|'ab'::bpchar
j|'{}'::jsonb
l|5
n|'{}'::integer[]
q|'x'::"char"
s|CURRENT_DATE
w|10
x|CURRENT_USER
y|false

# The columns of a check are in the order of its condition.
create table checked (a int, b int, c int check (c > 0), check (b > a and a <> b), check (true));
alter table checked drop column c, add column d int check (d < b);
create table checked_too (x int, like checked including constraints);
----
CREATE TABLE
ALTER TABLE
CREATE TABLE

select conrelid::regclass, conname, conkey from pg_constraint where conrelid::regclass::text like 'checked%' order by 1, 2;
select constraint_name, column_name from information_schema.constraint_column_usage where table_name = 'checked' order by 1, 2;
----
conrelid:regclass|conname:name|conkey:_int2
checked|checked_check|{2,1}
checked|checked_check1|NULL
checked|checked_check2|{4,2}
checked_too|checked_check|{3,2}
checked_too|checked_check1|NULL
checked_too|checked_check2|{4,3}
constraint_name:name|column_name:name
checked_check|a
checked_check|b
checked_check2|b
checked_check2|d

# A constraint that repeats another one is left out, and gives it its name if that has none.
create table u1 (a int unique, b int, constraint k unique (a), constraint l unique (a), unique (a));
create table u2 (a int primary key, constraint m unique (a));
create table u3 (a int unique unique, b int, unique (a, b), constraint z unique (a, b), unique (b, a));
create table u4 (a int constraint q primary key, constraint r unique (a), unique (a));
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
CREATE TABLE

select conrelid::regclass, conname, contype, conkey from pg_constraint where conrelid::regclass::text like 'u_' order by 1, 2;
----
conrelid:regclass|conname:name|contype:char|conkey:_int2
u1|k|u|{1}
u2|m|p|{1}
u3|u3_a_key|u|{1}
u3|u3_b_a_key|u|{2,1}
u3|z|u|{1,2}
u4|q|p|{1}
