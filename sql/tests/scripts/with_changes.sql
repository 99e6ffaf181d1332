# INSERT, UPDATE and DELETE inside WITH. All parts see the state before the statement.

# Rows move from one table to another.
create table queue (id int primary key, job text);
create table done (id int primary key, job text, at int default 7);
insert into queue select g, 'job ' || g from generate_series(1, 6) g;
with moved as (delete from queue where id <= 2 returning *) insert into done select * from moved;
select * from queue order by id;
select * from done order by id;
with moved as (delete from queue where id = 3 returning id, job) select job, id from moved;
with a as (insert into done values (10, 'ten') returning id), b as (insert into done values (11, 'eleven') returning id)
select id from a union all select id from b order by id;
with a as (update queue set job = upper(job) returning *), b as (delete from done where id in (select id + 6 from a) returning *)
select (select count(*) from a), (select count(*) from b), (select count(*) from queue where job like 'job%');
select * from queue order by id;
----
CREATE TABLE
CREATE TABLE
INSERT 0 6
INSERT 0 2
id:int4|job:text
3|job 3
4|job 4
5|job 5
6|job 6
id:int4|job:text|at:int4
1|job 1|7
2|job 2|7
job:text|id:int4
job 3|3
id:int4
10
11
count:int8|count:int8|count:int8
3|2|3
id:int4|job:text
4|JOB 4
5|JOB 5
6|JOB 6

# A change that nobody reads runs too.
with gone as (delete from queue where id = 4) select count(*) from queue;
select count(*) from queue;
with gone as (delete from queue where id = 5 returning *), also as (insert into done select id + 100, job from gone) select 1 as one;
select id from done where id > 100;
with x as (insert into queue values (20, 'a'), (21, 'b') returning id) update queue set job = 'none' where id in (select id from x);
select * from queue order by id;
with x as (insert into queue values (22, 'c')) delete from queue where id = 22;
select count(*) from queue where id = 22;
----
count:int8
3
count:int8
2
one:int4
1
id:int4
105
UPDATE 0
id:int4|job:text
6|JOB 6
20|a
21|b
DELETE 0
count:int8
1

# The first change of a row counts.
create table r (k int primary key, v int, unique (v));
insert into r values (1, 10), (2, 20), (3, 30);
with a as (update r set v = v + 1 where k = 1 returning v) update r set v = v + 100 where k <= 2 returning k, v;
select * from r order by k;
with a as (delete from r where k = 1) update r set v = 0 where k = 1;
select * from r order by k;
with a as (delete from r where k = 2 returning *) insert into r select k, v + 1 from a returning *;
with a as (update r set v = 31 where k = 3) delete from r returning *;
select * from r order by k;
with a as (insert into r values (5, 50) returning *) insert into r values (5, 51) on conflict (k) do nothing;
with a as (insert into r values (6, 60) returning *) insert into r values (6, 61) on conflict (k) do update set v = 0;
with a as (insert into r values (7, 70)) insert into r values (7, 71);
with a as (update r set v = 52 where k = 5 returning v) update r set v = r.v + a.v from a where r.k = 3 returning r.*, a.v;
select * from r order by k;
----
CREATE TABLE
INSERT 0 3
k:int4|v:int4
1|110
2|120
UPDATE 2
k:int4|v:int4
1|110
2|120
3|30
UPDATE 1
k:int4|v:int4
1|0
2|120
3|30
k:int4|v:int4
2|121
INSERT 0 1
k:int4|v:int4
1|0
2|121
3|30
DELETE 3
k:int4|v:int4
ERROR 23505: duplicate key value violates unique constraint "r_pkey"
DETAIL: Key (k)=(5) already exists.
ERROR 23505: duplicate key value violates unique constraint "r_pkey"
DETAIL: Key (k)=(6) already exists.
ERROR 23505: duplicate key value violates unique constraint "r_pkey"
DETAIL: Key (k)=(7) already exists.
k:int4|v:int4|v:int4
UPDATE 0
k:int4|v:int4

# Upserts as applications write them.
create table tags (id serial primary key, name text unique);
insert into tags (name) values ('a'), ('b');
with want (name) as (values ('b'), ('c')), ins as (insert into tags (name) select name from want on conflict (name) do nothing returning id, name)
select name, 'new' as what from ins union all select t.name, 'old' from tags t join want using (name) order by name;
with up as (update tags set name = 'z' where name = 'nope' returning *) insert into tags (name) select 'z' where not exists (select 1 from up) returning name;
with up as (update tags set name = 'y' where name = 'z' returning *) insert into tags (name) select 'z' where not exists (select 1 from up);
select name from tags order by name;
----
CREATE TABLE
INSERT 0 2
name:text|what:text
b|old
c|new
name:text
z
INSERT 0 1
INSERT 0 0
name:text
a
b
c
y

# Foreign keys are checked when all parts are done.
create table p (a int primary key);
create table c (a int references p on delete cascade, b int);
with child as (insert into c values (1, 1), (2, 2) returning a) insert into p select a from child;
with child as (insert into c values (9, 9)) select 1;
with gone as (delete from p where a = 1 returning a) select (select count(*) from c), (select count(*) from gone);
select * from c;
with gone as (delete from p where a = 2) insert into c values (2, 3);
select count(*) from c;
----
CREATE TABLE
CREATE TABLE
INSERT 0 2
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_a_fkey"
DETAIL: Key (a)=(9) is not present in table "p".
count:int8|count:int8
2|1
a:int4|b:int4
2|2
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_a_fkey"
DETAIL: Key (a)=(2) is not present in table "p".
count:int8
1

# Where it is not allowed.
with x as (delete from r) select * from x;
select * from (with x as (delete from r returning *) select * from x) s;
insert into r with x as (delete from r returning *) select * from x;
with y as (with x as (delete from r returning *) select * from x) select * from y;
with recursive x as (delete from r returning *) select count(*) from x;
with x (a, b, c) as (insert into r values (8, 80) returning k, v) select * from x;
with x as (insert into missing values (1)) select 1;
create view w as with x as (delete from r returning *) select * from x;
begin read only;
with x as (delete from r returning *) select * from x;
rollback;
declare cur cursor for with x as (delete from r returning *) select * from x;
begin;
declare cur cursor for with x as (delete from r returning *) select * from x;
rollback;
----
ERROR 0A000: WITH query "x" does not have a RETURNING clause [at 41]
ERROR 0A000: WITH clause containing a data-modifying statement must be at the top level [at 21]
ERROR 0A000: WITH clause containing a data-modifying statement must be at the top level [at 20]
ERROR 0A000: WITH clause containing a data-modifying statement must be at the top level [at 17]
count:int8
0
ERROR 42P10: WITH query "x" has 2 columns available but 3 columns specified [at 6]
ERROR 42P01: relation "missing" does not exist [at 24]
ERROR 0A000: WITH clause containing a data-modifying statement must be at the top level [at 23]
BEGIN
ERROR 25006: cannot execute SELECT in a read-only transaction
ROLLBACK
ERROR 0A000: DECLARE CURSOR must not contain data-modifying statements in WITH
BEGIN
ERROR 0A000: DECLARE CURSOR must not contain data-modifying statements in WITH
ROLLBACK

# Queries of WITH RECURSIVE that change rows may name later ones. None reads itself.
create table wr (k int primary key, v int);
with recursive a as (insert into wr select x, 1 from b returning k), b as (select 7 as x) select * from a;
with recursive a as (update wr set v = (select max(x) from b) where exists (select 1 from c) returning k, v), b as (select 8 as x), c as (select 1) select * from a;
with recursive a as (delete from wr using b where b.x = wr.k returning (select y from c)), b as (select 7 as x), c as (select 3 as y) select * from a;
with recursive a as (insert into wr (k) values ((select x from b)), ((select x from b) + 1) on conflict (k) do update set v = (select max(y) from c) where exists (select from d) returning k, wr.v), b as (select 1 as x), c as (select 2 as y), d as (select 1) select * from a;
with recursive a as (insert into wr (k) values ((select x from b)), ((select x from b) + 1) on conflict (k) do update set v = (select max(y) from c) where exists (select from d) returning k, wr.v), b as (select 1 as x), c as (select 2 as y), d as (select 1) select * from a;
with recursive a as (with z as (select x from b) insert into wr (k) select x + 10 from z returning k), b as (select 1 as x) select * from a;
with recursive a as (with b as (select 20 as x) insert into wr (k) select x from b returning k), b as (select k as x from a) select * from a, b;
with recursive a as (update wr set v = 5 where k = 20 returning k), wr as (select 5 as k) select a.k, wr.k from a, wr;
with recursive wr as (insert into wr select 1 returning k) select * from wr;
with recursive a as (insert into wr select k from a returning k) select * from a;
with recursive a as (insert into wr (k) select 1 returning (select count(*) from a)) select * from a;
with recursive a as (insert into wr (k) values (1) returning k), b as (delete from wr using a, c where wr.k = a.k returning wr.k), c as (select 1 from b) select * from b;
with recursive a as (update wr set v = 2 returning k), wr as (select k from a) select * from a;
with recursive a as (select w.k as x from wr w for update of w), w as (select x from a) select * from w;
with wr as (select 5 as k) update wr set v = 1 where k = 20;
with wr as (select 5 as k) delete from wr where k = 20;
drop table wr;
----
CREATE TABLE
k:int4
7
k:int4|v:int4
7|8
y:int4
3
k:int4|v:int4
1|NULL
2|NULL
k:int4|v:int4
1|2
2|2
k:int4
11
k:int4|x:int4
20|20
k:int4|k:int4
20|5
ERROR 42P19: recursive query "wr" must not contain data-modifying statements [at 16]
ERROR 42P19: recursive query "a" must not contain data-modifying statements [at 16]
ERROR 42P19: recursive query "a" must not contain data-modifying statements [at 16]
ERROR 0A000: mutual recursion between WITH items is not implemented [at 66]
ERROR 0A000: mutual recursion between WITH items is not implemented [at 16]
ERROR 0A000: mutual recursion between WITH items is not implemented [at 16]
UPDATE 1
DELETE 1
DROP TABLE

# In a transaction, with savepoints, prepared, explained.
begin;
insert into r values (40, 400);
with x as (update r set v = v + 1 where k = 40 returning v) select v from x;
savepoint s;
with x as (delete from r returning k) select count(*) from x;
select count(*) from r;
rollback to s;
select * from r order by k;
commit;
prepare mv (int) as with x as (delete from queue where id = $1 returning *) insert into done select id + 200, job from x returning id;
execute mv (6);
execute mv (6);
explain with x as (delete from r where k = 40 returning v) select * from x;
explain analyze with x as (delete from r where k = 40 returning v) select * from x;
select count(*) from r where k = 40;
----
BEGIN
INSERT 0 1
v:int4
401
SAVEPOINT
count:int8
1
count:int8
0
ROLLBACK
k:int4|v:int4
40|401
COMMIT
PREPARE
id:int4
206
INSERT 0 1
id:int4
INSERT 0 0
CTE Scan on x
  CTE x
    ->  Delete on r
          ->  Point Get on r
                Key: (k = 40)
CTE Scan on x (actual time=... rows=1 loops=1)
  CTE x
    ->  Delete on r
          ->  Point Get on r (actual time=... rows=1 loops=1)
                Key: (k = 40)
                Read: path=lease store=1 node=1 round_trips=0 requests=1 start_ts=... safe_ts=... regions=1
Planning Time: ... ms
Execution Time: ... ms
count:int8
0
