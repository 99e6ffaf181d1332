# The texts of views: what becomes of them when what they read changes.

# New columns change no view.

create table a (id int primary key, x int);
create table b (id int primary key, y int);
insert into a values (1, 10), (2, 20);
insert into b values (1, 100), (2, 200);
create view vq as select id, (select x from b where b.id = a.id) sx from a;
create view nj as select a.id, y from a natural join b;
create view nl as select id, x, q from a natural left join (select id, y as q from b) as n;
create view us as select id, x, y from a join b using (id) where x > 10 order by y;
create view cm as select x, y from a, b where a.id = b.id;
create view ga as select x + 1 as z, count(*) from a group by z;
create view wr as select row_to_json(a)::text r from a;
create view wl as select row(a.*)::text r, a.id from a;
create view la as select a.id, l.m from a, lateral (select y + x as m from b where b.id = a.id) l;
create view ex as select id from a where exists (select 1 from b where y = x * 10);
create view wi as select x, sum(y) over (partition by x order by y) from a join b on a.id = b.id;
create view ct as with c as (select id, x from a) select x, y from c join b on c.id = b.id;
create view un as select x from a cross join b union select y from b order by x;
create view ag as select (select sum(x) from b where b.id = 1) s from a;
create view fn as select x, g from a, generate_series(1, x / 10) g;
create view nn as select n.id from (a natural join b) as n(id, x, y);
create view nx as select x, p from a natural join (select y as p from b) c;
alter table b add column x int default -1;
alter table a add column z int default 5, add column a int default 7;
alter table b add column z int default 6, add column m int, add column g int, add column p int;
select * from vq order by 1;
select * from nj order by 1;
select * from nl order by 1;
select * from us order by 1;
select * from cm order by 1;
select * from ga order by 1;
select * from wr order by 1;
select * from wl order by 2;
select * from la order by 1;
select * from ex order by 1;
select * from wi order by 1;
select * from ct order by 1;
select * from un order by 1;
select * from ag order by 1;
select * from fn order by 1, 2;
select * from nn order by 1;
select * from nx order by 1, 2;
select viewname, definition from pg_views where schemaname = 'public' order by 1;
----
CREATE TABLE
CREATE TABLE
INSERT 0 2
INSERT 0 2
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
ALTER TABLE
ALTER TABLE
ALTER TABLE
id:int4|sx:int4
1|10
2|20
id:int4|y:int4
1|100
2|200
id:int4|x:int4|q:int4
1|10|100
2|20|200
id:int4|x:int4|y:int4
2|20|200
x:int4|y:int4
10|100
20|200
z:int4|count:int8
11|1
21|1
r:text
{"id":1,"x":10,"z":5,"a":7}
{"id":2,"x":20,"z":5,"a":7}
r:text|id:int4
(1,10)|1
(2,20)|2
id:int4|m:int4
1|110
2|220
id:int4
1
2
x:int4|sum:int8
10|100
20|200
x:int4|y:int4
10|100
20|200
x:int4
10
20
100
200
s:int8
30
x:int4|g:int4
10|1
20|1
20|2
id:int4
1
2
x:int4|p:int4
10|100
10|200
20|100
20|200
viewname:name|definition:text
ag| select (select sum(a.x) from b where b.id = 1) s from a;
cm| select a.x, b.y from a, b where a.id = b.id;
ct| with c as (select id, x from a) select c.x, b.y from c join b on c.id = b.id;
ex| select id from a where exists (select 1 from b where y = a.x * 10);
fn| select a.x, g.g from a, generate_series(1, a.x / 10) g;
ga| select x + 1 as z, count(*) from a group by 1;
la| select a.id, l.m from a, lateral (select y + a.x as m from b where b.id = a.id) l;
nj| select a.id, b.y from a join b USING (id);
nl| select a.id, a.x, n.q from a left join (select id, y as q from b) as n USING (id);
nn| select n.id from (a join b USING (id)) as n(id, x, y);
nx| select a.x, c.p from a join (select y as p from b) c ON true;
un| select a.x from a cross join b union select y from b order by x;
us| select a.id, a.x, b.y from a join b using (id) where a.x > 10 order by y;
vq| select id, (select a.x from b where b.id = a.id) sx from a;
wi| select a.x, sum(b.y) over (partition by a.x order by b.y) from a join b on a.id = b.id;
wl| select row(a.id, a.x)::text r, a.id from a;
wr| select row_to_json(a.*)::text r from a;

# Where a name would mean another column, the change is refused.

alter table b rename column y to yy;
alter table b rename column p to y2;
create table fa (k int);
create table fb (k int);
create table fc (n int);
create view fj as select k from fa full join fb using (k) cross join fc;
alter table fc add column k int;
create table sa (p int);
create table sb (q int);
create view sh as select (select p from sb sa) from sa;
alter table sb add column p int;
create view rv as select 1 as one;
create view rw as select one, x from rv, a;
create or replace view rv as select 1 as one, 2 as x;
select * from rw order by x;
----
ERROR 0A000: a new name for a column that a view reads is not supported yet
DETAIL: The view nj reads it.
HINT: Drop the view, and create it again over the new name.
ALTER TABLE
CREATE TABLE
CREATE TABLE
CREATE TABLE
CREATE VIEW
ERROR 2BP01: cannot alter table fc because view fj depends on it
DETAIL: column reference "k" is ambiguous
HINT: Drop the view first.
CREATE TABLE
CREATE TABLE
CREATE VIEW
ERROR 2BP01: cannot alter table sb because view sh depends on it
DETAIL: A name in the query of the view would mean another column.
HINT: Drop the view first, and create it again with qualified names.
CREATE VIEW
CREATE VIEW
CREATE VIEW
one:int4|x:int4
1|10
1|20

# Columns of views get other names.

create table t (id int primary key, x int, y int);
create view v as select id, x from t;
create view vv as select v.x, t.y from v, t;
alter view v rename column id to key;
alter table v rename column key to "Key";
alter view v rename "Key" to k;
alter view v rename column nope to n;
alter view v rename column k to x;
alter view v rename column x to z;
alter view v rename column k to y;
select * from v;
select * from vv;
alter view v alter column y set default 1;
alter view v alter column y drop default;
alter table v alter column y set not null;
alter table v alter column y drop not null;
alter table v alter column y type int;
alter view if exists nov rename column a to b;
----
CREATE TABLE
CREATE VIEW
CREATE VIEW
ALTER VIEW
ALTER TABLE
ALTER VIEW
ERROR 42703: column "nope" does not exist
ERROR 42701: column "x" of relation "v" already exists
ERROR 0A000: a new name for a column that a view reads is not supported yet
DETAIL: The view vv reads it.
HINT: Drop the view, and create it again over the new name.
ALTER VIEW
y:int4|x:int4
x:int4|y:int4
ERROR 0A000: a default of a column of a view is not supported yet [at 12]
ERROR 0A000: a default of a column of a view is not supported yet [at 12]
ERROR 42809: ALTER action ALTER COLUMN ... SET NOT NULL cannot be performed on relation "v"
DETAIL: This operation is not supported for views.
ERROR 42809: ALTER action ALTER COLUMN ... DROP NOT NULL cannot be performed on relation "v"
DETAIL: This operation is not supported for views.
ERROR 42809: ALTER action ALTER COLUMN ... SET DATA TYPE cannot be performed on relation "v"
DETAIL: This operation is not supported for views.
NOTICE 00000: relation "nov" does not exist, skipping
ALTER VIEW

# A view that groups by a key depends on it.

create table k (id int primary key, x int);
create table kr (id int references k);
create view kv as select id, x, count(*) from k group by id;
create view kw as select id from kv;
create view ko as select id, count(*) from k group by id;
alter table k drop constraint k_pkey;
alter table k drop constraint k_pkey cascade;
select * from kv;
select * from ko;
----
CREATE TABLE
CREATE TABLE
CREATE VIEW
CREATE VIEW
CREATE VIEW
ERROR 2BP01: cannot drop constraint k_pkey on table k because other objects depend on it
DETAIL: constraint kr_id_fkey on table kr depends on index k_pkey
view kv depends on constraint k_pkey on table k
view kw depends on view kv
HINT: Use DROP ... CASCADE to drop the dependent objects too.
NOTICE 00000: drop cascades to 3 other objects
ALTER TABLE
ERROR 42P01: relation "kv" does not exist [at 15]
id:int4|count:int8

# A schema gets another name.

create schema y1;
create table y1.t (id int primary key, x int);
insert into y1.t values (1, 10);
create sequence y1.sq;
create type y1.e as enum ('u', 'v');
create view y1.v as select id, y1.t.x, 'u'::y1.e as e from y1.t;
create view pv as select nextval('y1.sq') as n, 'y1.t'::regclass as c, 'y1.t' as text, v.e from "y1".v;
create view al as select y1.x from y1.t y1;
create view pr as select 'y1.e'::regtype as ty;
create view ot as select 1 as y1;
alter schema y1 rename to "Y2";
create schema y1;
create table y1.t (id int primary key, x int);
select * from "Y2".v;
select * from pv;
select * from al;
select * from pr;
select * from ot;
alter schema "Y2" rename to y3;
drop schema y1 cascade;
select * from pv;
drop schema y3 cascade;
----
CREATE SCHEMA
CREATE TABLE
INSERT 0 1
CREATE SEQUENCE
CREATE TYPE
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
CREATE VIEW
ALTER SCHEMA
CREATE SCHEMA
CREATE TABLE
id:int4|x:int4|e:enum
1|10|u
n:int8|c:regclass|text:text|e:enum
1|"Y2".t|y1.t|u
x:int4
10
ty:regtype
"Y2".e
y1:int4
1
ALTER SCHEMA
NOTICE 00000: drop cascades to table y1.t
DROP SCHEMA
n:int8|c:regclass|text:text|e:enum
2|y3.t|y1.t|u
NOTICE 00000: drop cascades to 6 other objects
DROP SCHEMA

# What only looks like its name.

create schema w;
create table w.t (w int, x int);
create view wv as select w.w, w.x from w.t w, (select 'w.t' as w) u where u.w = 'w.t';
create view ww as select w.t.w, 'w.t'::regclass as c, 'w.t' as w2 from w.t;
alter schema w rename to z;
select pg_get_viewdef('wv'::regclass), pg_get_viewdef('ww'::regclass);
create view zz as select w.x, z.t.w from z.t, z.t w;
alter schema z rename to w;
select pg_get_viewdef('zz'::regclass);
----
CREATE SCHEMA
CREATE TABLE
CREATE VIEW
CREATE VIEW
ALTER SCHEMA
pg_get_viewdef:text|pg_get_viewdef:text
 select w.w, w.x from z.t w, (select 'w.t' as w) u where u.w = 'w.t';| select z.t.w, 'z.t'::regclass as c, 'w.t' as w2 from z.t;
CREATE VIEW
ALTER SCHEMA
pg_get_viewdef:text
 select w.x, w.t.w from w.t, w.t w;

# Types and relations in constants are those that the text named, whatever the search path finds.
create schema v1; create schema v2;
set search_path = v1;
create sequence vsq;
create type v1.tone as enum ('low', 'high');
create domain v1.pos as int check (value > 0);
create view drawn as select nextval('vsq') as n, 'vsq'::regclass as r, 'low'::tone as t, '{low,high}'::tone[] as ts, '5'::pos as p;
create sequence v2.vsq start 900;
create type v2.tone as enum ('x');
set search_path = v2;
select * from v1.drawn;
select definition from pg_views where viewname = 'drawn';
set search_path = public;
select * from v1.drawn;
alter type v1.tone rename to pitch;
alter sequence v1.vsq rename to vsr;
alter schema v1 rename to v3;
select * from v3.drawn;
select pg_get_viewdef('v3.drawn'::regclass);
create view missing as select nextval('nosuch');
drop sequence v3.vsr;
drop schema v2, v3 cascade;
----
CREATE SCHEMA
CREATE SCHEMA
SET
CREATE SEQUENCE
CREATE TYPE
CREATE DOMAIN
CREATE VIEW
CREATE SEQUENCE
CREATE TYPE
SET
n:int8|r:regclass|t:enum|ts:_enum|p:int4
1|v1.vsq|low|{low,high}|5
definition:text
 select nextval('v1.vsq') as n, 'v1.vsq'::regclass as r, 'low'::v1.tone as t, '{low,high}'::v1.tone[] as ts, '5'::v1.pos as p;
SET
n:int8|r:regclass|t:enum|ts:_enum|p:int4
2|v1.vsq|low|{low,high}|5
ALTER TYPE
ALTER SEQUENCE
ALTER SCHEMA
n:int8|r:regclass|t:enum|ts:_enum|p:int4
3|v3.vsr|low|{low,high}|5
pg_get_viewdef:text
 select nextval('v3.vsr') as n, 'v3.vsr'::regclass as r, 'low'::v3.pitch as t, '{low,high}'::v3.pitch[] as ts, '5'::v3.pos as p;
ERROR 42P01: relation "nosuch" does not exist
ERROR 2BP01: cannot drop sequence v3.vsr because other objects depend on it
DETAIL: view v3.drawn depends on sequence v3.vsr
HINT: Use DROP ... CASCADE to drop the dependent objects too.
NOTICE 00000: drop cascades to 6 other objects
DROP SCHEMA
