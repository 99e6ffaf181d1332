# Texts that the catalog keeps: operators with ANY and ALL in conditions, names of sequences in defaults.

create table cm (s text check (s like any (array['a%'])), x int, check (x = any (array[1, 2]) or s ilike all (array['A%'])));
create index cmi on cm (x) where s ilike any (array['A%']);
create index cme on cm ((s like any (array['b%'])));
create table gm (s text, g boolean generated always as (case when s like any (array['a%']) then true else false end) stored);
select pg_get_constraintdef(oid) like '%~~ ANY%' a, pg_get_constraintdef(oid) like '%~~* ALL%' b from pg_constraint where conrelid = 'cm'::regclass order by conname;
select indexdef from pg_indexes where tablename = 'cm' order by 1;
insert into cm values ('b', 1);
insert into cm values ('abc', 1);
alter table cm rename column s to t;
insert into cm values ('b', 1);
insert into gm values ('abc'), ('b') returning *;
create sequence inv;
create table iv (id int primary key, no text default 'INV-' || lpad(nextval('inv')::text, 5, '0'));
alter sequence inv rename to inv_seq;
insert into iv values (1) returning *;
create schema p1;
create schema p2;
set search_path = p1;
create sequence s1;
create table st (id serial, b text default 'x' || nextval('s1'), c int default nextval('s1') + 0, d int default nextval('s1'), e oid default 's1'::regclass::oid);
set search_path = p2;
create sequence s1 start 500;
insert into p1.st default values returning id, b, c, d, e = 'p1.s1'::regclass;
alter sequence s1 rename to s1z;
set search_path = public;
insert into p1.st default values returning id, b, c, d;
alter sequence p1.s1 rename to s1q;
create table nos (a int, c int default nextval('nosuch') + 1);
create table nos (a int, c text default 's1' || nextval('p1.s1'), d text default 'it''s ' || nextval('inv'));
insert into nos default values returning *;
begin;
set constraints st_id_key deferred;
rollback;
----
CREATE TABLE
CREATE INDEX
CREATE INDEX
CREATE TABLE
a:bool|b:bool
f|t
t|f
indexdef:text
CREATE INDEX cme ON public.cm USING btree ((s ~~ ANY(ARRAY['b%'])))
CREATE INDEX cmi ON public.cm USING btree (x) WHERE (s ~~* ANY(ARRAY['A%']))
ERROR 23514: new row for relation "cm" violates check constraint "cm_s_check"
DETAIL: Failing row contains (b, 1).
INSERT 0 1
ALTER TABLE
ERROR 23514: new row for relation "cm" violates check constraint "cm_s_check"
DETAIL: Failing row contains (b, 1).
s:text|g:bool
abc|t
b|f
INSERT 0 2
CREATE SEQUENCE
CREATE TABLE
ERROR 0A000: a new name for a sequence that the default of column no of table iv names is not supported yet
id:int4|no:text
1|INV-00001
INSERT 0 1
CREATE SCHEMA
CREATE SCHEMA
SET
CREATE SEQUENCE
CREATE TABLE
SET
CREATE SEQUENCE
id:int4|b:text|c:int4|d:int4|?column?:bool
1|x1|2|3|t
INSERT 0 1
ALTER SEQUENCE
SET
id:int4|b:text|c:int4|d:int4
2|x4|5|6
INSERT 0 1
ERROR 0A000: a new name for a sequence that the default of column b of table st names is not supported yet
ERROR 42P01: relation "nosuch" does not exist
CREATE TABLE
a:int4|c:text|d:text
NULL|s17|it's 2
INSERT 0 1
BEGIN
ERROR 42704: constraint "st_id_key" does not exist
ROLLBACK
