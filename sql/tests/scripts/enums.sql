# Enums: CREATE TYPE, values, comparisons, indexes, ALTER TYPE, DROP TYPE.

create type mood as enum ('sad', 'ok', 'happy');
create type mood as enum ('x');
create type twice as enum ('a', 'a');
create type long as enum ('0123456789012345678901234567890123456789012345678901234567890123');
create type empty as enum ();
create type comp as (a int);
select 'happy'::mood, 'sad'::mood < 'ok', 'ok'::mood > 'happy'::mood, 'sad'::mood = 'sad', mood 'ok';
select 'angry'::mood;
select ''::mood;
select 'Happy'::mood;
select null::mood, 'happy'::text::mood, 'sad'::mood::text, 'sad'::mood || '!';
select 1::mood;
select 'sad'::mood + 1;
select 'sad'::mood = 1;
select 'sad'::mood = 'sad'::text;
select enum_first(null::mood), enum_last(null::mood), enum_range(null::mood), enum_range('ok'::mood, null), enum_range(null, 'ok'::mood), enum_range('ok'::mood, 'happy'::mood);
select '{happy,sad}'::mood[], array['ok', 'sad']::mood[], array['ok'::mood], ('{happy,sad}'::mood[])[1], 'ok' = any ('{ok}'::mood[]);
select pg_typeof('ok'::mood), pg_typeof('{}'::mood[]), 'mood'::regtype, 'mood[]'::regtype, format_type('mood'::regtype, -1);
select greatest('sad'::mood, 'happy', 'ok'), least('ok'::mood, 'sad'), coalesce(null, 'ok'::mood), case when true then 'sad'::mood else 'ok' end;
----
CREATE TYPE
ERROR 42710: type "mood" already exists
ERROR 23505: duplicate key value violates unique constraint "pg_enum_typid_label_index"
ERROR 42602: invalid enum label "0123456789012345678901234567890123456789012345678901234567890123"
DETAIL: Labels must be 63 bytes or less.
CREATE TYPE
ERROR 0A000: CREATE TYPE of a type that is no enum is not supported yet [at 13]
mood:enum|?column?:bool|?column?:bool|?column?:bool|mood:enum
happy|t|f|t|ok
ERROR 22P02: invalid input value for enum mood: "angry" [at 8]
ERROR 22P02: invalid input value for enum mood: "" [at 8]
ERROR 22P02: invalid input value for enum mood: "Happy" [at 8]
mood:enum|mood:enum|text:text|?column?:text
NULL|happy|sad|sad!
ERROR 42846: cannot cast type integer to mood [at 9]
ERROR 42883: operator does not exist: mood + integer [at 20]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
ERROR 42883: operator does not exist: mood = integer [at 20]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
ERROR 42883: operator does not exist: mood = text [at 20]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
enum_first:enum|enum_last:enum|enum_range:_enum|enum_range:_enum|enum_range:_enum|enum_range:_enum
sad|happy|{sad,ok,happy}|{ok,happy}|{sad,ok}|{ok,happy}
mood:_enum|array:_enum|array:_enum|mood:enum|?column?:bool
{happy,sad}|{ok,sad}|{ok}|happy|t
pg_typeof:regtype|pg_typeof:regtype|regtype:regtype|regtype:regtype|format_type:text
mood|mood[]|mood|mood[]|mood
greatest:enum|least:enum|coalesce:enum|case:enum
happy|sad|ok|sad

create table person (name text primary key, m mood not null default 'ok', all_moods mood[]);
insert into person values ('ann', 'happy', '{sad,ok}'), ('bob', 'sad', null), ('cid', default, '{}');
insert into person values ('dan', 'angry');
insert into person values ('dan', 'sad'::text);
insert into person values ('dan', null);
select * from person order by m, name;
select name from person where m > 'sad' order by m desc;
select name from person where m = 'nope';
select m, count(*) from person group by m order by m;
select max(m), min(m), array_agg(m order by m), string_agg(m::text, ',' order by m) from person;
select name from person where m in ('sad', 'happy') order by name;
select name from person where 'sad' = any (all_moods);
create index person_m on person (m desc);
explain (costs off) select name from person where m = 'sad';
select name from person where m = 'sad';
update person set m = 'happy' where m < 'ok' returning name, m;
create table keyed (m mood primary key, n int);
insert into keyed values ('happy', 3), ('sad', 1), ('ok', 2);
insert into keyed values ('ok', 9);
select * from keyed where m >= 'ok' order by m;
create table checked (m mood check (m <> 'sad'), t text generated always as (case m when 'ok' then 'fine' else 'other' end) stored);
insert into checked values ('ok'), ('happy');
insert into checked values ('sad');
select * from checked order by m;
create view happy as select name, m from person where m = 'happy'::mood;
select * from happy order by name;
----
CREATE TABLE
INSERT 0 3
ERROR 22P02: invalid input value for enum mood: "angry" [at 35]
ERROR 42804: column "m" is of type mood but expression is of type text [at 35]
HINT: You will need to rewrite or cast the expression.
ERROR 23502: null value in column "m" of relation "person" violates not-null constraint
DETAIL: Failing row contains (dan, null, null).
name:text|m:enum|all_moods:_enum
bob|sad|NULL
cid|ok|{}
ann|happy|{sad,ok}
name:text
ann
cid
ERROR 22P02: invalid input value for enum mood: "nope" [at 35]
m:enum|count:int8
sad|1
ok|1
happy|1
max:enum|min:enum|array_agg:_enum|string_agg:text
happy|sad|{sad,ok,happy}|sad,ok,happy
name:text
ann
bob
name:text
ann
CREATE INDEX
Index Only Scan using person_m on person
  Index Cond: (m = 4294967296)
name:text
bob
name:text|m:enum
bob|happy
UPDATE 1
CREATE TABLE
INSERT 0 3
ERROR 23505: duplicate key value violates unique constraint "keyed_pkey"
DETAIL: Key (m)=(ok) already exists.
m:enum|n:int4
ok|2
happy|3
CREATE TABLE
INSERT 0 2
ERROR 23514: new row for relation "checked" violates check constraint "checked_m_check"
DETAIL: Failing row contains (sad, other).
m:enum|t:text
ok|fine
happy|other
CREATE VIEW
name:text|m:enum
ann|happy
bob|happy

alter type mood add value 'great';
alter type mood add value 'great';
alter type mood add value if not exists 'great';
alter type mood add value 'meh' before 'ok';
alter type mood add value 'fine' after 'ok';
alter type mood add value 'x' before 'nope';
select enum_range(null::mood);
insert into person values ('eve', 'meh'), ('fay', 'great'), ('gil', 'fine');
select name, m from person order by m, name;
select name from person where m between 'meh' and 'fine' order by m, name;
select * from keyed order by m;
insert into keyed values ('meh', 15) returning *;
select * from keyed order by m desc;
alter type mood rename value 'meh' to 'so-so';
alter type mood rename value 'nope' to 'x';
alter type mood rename value 'ok' to 'sad';
select name, m from person where m = 'so-so';
select 'meh'::mood;
alter type mood rename value 'great' to 'great';
select enumlabel, enumsortorder from pg_enum e join pg_type t on t.oid = enumtypid where typname = 'mood' order by enumsortorder;
select typname, typtype, typcategory, typlen, typelem::regtype, typarray::regtype from pg_type where typname in ('mood', '_mood') order by 1;
select column_name, data_type, udt_schema, udt_name from information_schema.columns where table_name = 'person' order by ordinal_position;
alter type int4 add value 'x';
alter type nope add value 'x';
alter type mood rename to feeling;
drop view happy;
alter type mood rename to feeling;
create type other as enum ('a');
alter type other rename to feeling2;
alter type feeling rename to mood;
select 'a'::other;
select name, m from person where m = 'so-so';
----
ALTER TYPE
ERROR 42710: enum label "great" already exists
NOTICE 42710: enum label "great" already exists, skipping
ALTER TYPE
ALTER TYPE
ALTER TYPE
ERROR 22023: "nope" is not an existing enum label
enum_range:_enum
{sad,meh,ok,fine,happy,great}
INSERT 0 3
name:text|m:enum
eve|meh
cid|ok
gil|fine
ann|happy
bob|happy
fay|great
name:text
eve
cid
gil
m:enum|n:int4
sad|1
ok|2
happy|3
m:enum|n:int4
meh|15
INSERT 0 1
m:enum|n:int4
happy|3
ok|2
meh|15
sad|1
ALTER TYPE
ERROR 22023: "nope" is not an existing enum label
ERROR 42710: enum label "sad" already exists
name:text|m:enum
eve|so-so
ERROR 22P02: invalid input value for enum mood: "meh" [at 8]
ERROR 42710: enum label "great" already exists
enumlabel:name|enumsortorder:float4
sad|1
so-so|2
ok|3
fine|4
happy|5
great|6
typname:name|typtype:char|typcategory:char|typlen:int2|typelem:regtype|typarray:regtype
_mood|b|A|-1|mood|-
mood|e|E|4|-|mood[]
column_name:name|data_type:varchar|udt_schema:name|udt_name:name
name|text|pg_catalog|text
m|USER-DEFINED|public|mood
all_moods|ARRAY|public|_mood
ERROR 42809: integer is not an enum
ERROR 42704: type "nope" does not exist
ALTER TYPE
DROP VIEW
ERROR 42704: type "mood" does not exist
CREATE TYPE
ALTER TYPE
ALTER TYPE
ERROR 42704: type "other" does not exist [at 13]
name:text|m:enum
eve|so-so

create table mood (a int);
create schema s;
create type s.mood as enum ('in s');
select 'in s'::s.mood, 'in s'::mood;
select pg_typeof('in s'::s.mood);
set search_path = s, public;
select 'in s'::mood, pg_typeof('sad'::public.mood);
reset search_path;
drop type public.mood;
drop type nope;
drop type if exists nope;
drop type integer;
drop schema s;
drop schema s cascade;
select 'in s'::s.mood;
drop type mood cascade;
select * from person order by name;
select * from keyed;
select 'sad'::mood;
create type mood as enum ('new');
select 'new'::mood;
prepare p (mood) as select $1, $1 = 'new';
execute p ('new');
execute p ('old');
begin;
create type t1 as enum ('a');
create table tt (x t1);
insert into tt values ('a');
alter type t1 add value 'b';
select * from tt;
rollback;
select 'a'::t1;
create temp table te (m mood);
insert into te values ('new');
drop type mood;
drop table te;
drop type mood;
select typname from pg_type where typname like '%mood';
----
ERROR 42710: type "mood" already exists
HINT: A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.
CREATE SCHEMA
CREATE TYPE
ERROR 22P02: invalid input value for enum mood: "in s" [at 24]
pg_typeof:regtype
s.mood
SET
mood:enum|pg_typeof:regtype
in s|public.mood
RESET
ERROR 2BP01: cannot drop type mood because other objects depend on it
DETAIL: column all_moods of table person depends on type mood[]
column m of table person depends on type mood
column m of table keyed depends on type mood
column m of table checked depends on type mood
HINT: Use DROP ... CASCADE to drop the dependent objects too.
ERROR 42704: type "nope" does not exist
NOTICE 00000: type "nope" does not exist, skipping
DROP TYPE
ERROR 2BP01: cannot drop type integer because it is required by the database system
ERROR 2BP01: cannot drop schema s because other objects depend on it
DETAIL: type s.mood depends on schema s
HINT: Use DROP ... CASCADE to drop the dependent objects too.
NOTICE 00000: drop cascades to type s.mood
DROP SCHEMA
ERROR 42704: type "s.mood" does not exist [at 16]
NOTICE 00000: drop cascades to 4 other objects
NOTICE 00000: drop cascades to column t of table checked
DROP TYPE
name:text
ann
bob
cid
eve
fay
gil
n:int4
1
15
2
3
ERROR 42704: type "mood" does not exist [at 15]
CREATE TYPE
mood:enum
new
PREPARE
?column?:enum|?column?:bool
new|t
ERROR 22P02: invalid input value for enum mood: "old" [at 12]
BEGIN
CREATE TYPE
CREATE TABLE
INSERT 0 1
ALTER TYPE
x:enum
a
ROLLBACK
ERROR 42704: type "t1" does not exist [at 13]
CREATE TABLE
INSERT 0 1
ERROR 2BP01: cannot drop type mood because other objects depend on it
DETAIL: column m of table te depends on type mood
HINT: Use DROP ... CASCADE to drop the dependent objects too.
DROP TABLE
DROP TYPE
typname:name

# Stored expressions and views follow the new name of a label.

create type state as enum ('new', 'old', 'odd');
create domain fresh_state as state default 'new' check (value <> 'odd');
create table tasks (id int primary key, s state default 'new' check (s <> 'odd'), k text generated always as (case s when 'new' then 'N' when 'old' then 'O' end) stored, pair state[] default '{new,old}', note text default 'new' check (note <> 'odd'), f fresh_state);
create unique index tasks_new on tasks ((s = 'new'), id) where s = 'new';
create view new_tasks as select id, 'new' as word from tasks where s = 'new' and s = any ('{new,odd}');
create view nested_tasks as select id from new_tasks where id < 9 and 'new' = enum_first(null::state);
insert into tasks (id) values (1);
alter type state rename value 'odd' to 'strange';
alter type state rename value 'new' to 'it''s';
select enum_range(null::state);
insert into tasks (id) values (2) returning s, k, pair, note, f;
insert into tasks (id, s) values (3, 'strange');
insert into tasks (id, f) values (3, 'strange');
insert into tasks (id, s) values (3, 'new');
select * from new_tasks order by id;
select * from nested_tasks order by id;
begin;
alter type state rename value 'old' to 'aged';
insert into tasks (id, s) values (4, 'aged') returning k, pair;
rollback;
insert into tasks (id, s) values (4, 'old') returning k, pair;
alter table tasks add column z int default 5;
select id, s, k, z from tasks where s = 'it''s' order by id;
drop view new_tasks cascade;
drop table tasks;
drop domain fresh_state;
drop type state;
----
CREATE TYPE
CREATE DOMAIN
CREATE TABLE
CREATE INDEX
CREATE VIEW
CREATE VIEW
INSERT 0 1
ALTER TYPE
ALTER TYPE
enum_range:_enum
{it's,old,strange}
s:enum|k:text|pair:_enum|note:text|f:enum
it's|N|{it's,old}|new|it's
INSERT 0 1
ERROR 23514: new row for relation "tasks" violates check constraint "tasks_s_check"
DETAIL: Failing row contains (3, strange, null, {it's,old}, new, it's).
ERROR 23514: value for domain fresh_state violates check constraint "fresh_state_check"
ERROR 22P02: invalid input value for enum state: "new" [at 38]
id:int4|word:text
1|new
2|new
id:int4
1
2
BEGIN
ALTER TYPE
k:text|pair:_enum
O|{it's,aged}
INSERT 0 1
ROLLBACK
k:text|pair:_enum
O|{it's,old}
INSERT 0 1
ALTER TABLE
id:int4|s:enum|k:text|z:int4
1|it's|N|5
2|it's|N|5
NOTICE 00000: drop cascades to view nested_tasks
DROP VIEW
DROP TABLE
DROP DOMAIN
DROP TYPE

# The parameters of EXECUTE have the types of the session's search path.
create schema apart;
set search_path = apart;
create type apart.tone as enum ('low', 'high');
prepare tone(tone) as select $1;
execute tone('bad');
execute tone('high'::tone);
deallocate tone;
set search_path = public;
drop schema apart cascade;
----
CREATE SCHEMA
SET
CREATE TYPE
PREPARE
ERROR 22P02: invalid input value for enum tone: "bad" [at 14]
?column?:enum
high
DEALLOCATE
SET
NOTICE 00000: drop cascades to type apart.tone
DROP SCHEMA
