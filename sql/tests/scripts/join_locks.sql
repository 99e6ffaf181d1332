# Locks of rows of joins.
create table em (id int primary key, mgr int, n int not null);
create table base (id int primary key, k int);
insert into em values (1, null, 10), (2, 1, 20), (3, 1, 30);
insert into base values (1, 100), (2, 200), (3, 300);
create view vb as select id, k from base;
----
CREATE TABLE
CREATE TABLE
INSERT 0 3
INSERT 0 3
CREATE VIEW

# One table of the join, its rows alone.
\session a
begin;
select a.id, b.n from em a join em b on a.mgr = b.id where a.n < 30 for update of a;
----
BEGIN
id:int4|n:int4
2|10

\session b
select id from em order by id for update skip locked;
select a.id from em a where id = 2 for update nowait;
select a.id, b.k from em a join base b using (id) order by id limit 1 offset 1 for update of a skip locked;
select a.id, b.k from em a join base b using (id) order by id for no key update of a nowait;
select * from em a join base b using (id) order by id for share of b;
----
id:int4
1
3
ERROR 55P03: could not obtain lock on row in relation "em"
id:int4|k:int4
3|300
ERROR 55P03: could not obtain lock on row in relation "em"
id:int4|mgr:int4|n:int4|k:int4
1|NULL|10|100
2|1|20|200
3|1|30|300

\session a
rollback;
----
ROLLBACK

# All tables; those that are no tables count for nothing.
begin;
select a.id, b.k from em a join base b on b.id = a.mgr order by a.id for update;
----
BEGIN
id:int4|k:int4
2|100
3|100

\session b
select id from em order by id for update skip locked;
select id from base order by id for update skip locked;
----
id:int4
1
id:int4
2
3

\session a
rollback;
begin;
with c as (select 2 as x) select a.id, g, v.y from em a join c on c.x = a.id, generate_series(1, 2) g, lateral (select a.n + g as y) v for update of a;
with c as (select 1 as x) select a.id from em a join c on c.x = a.id, (values (1), (2)) w (z) for update;
----
ROLLBACK
BEGIN
id:int4|g:int4|y:int4
2|1|21
2|2|22
id:int4
1
1

\session b
select id from em order by id for update skip locked;
----
id:int4
3

\session a
rollback;
begin;
select a.id, s.k from em a left join (select id, k from base where k > 100) s on s.id = a.id order by a.id for update of a;
select a.id, v.k from em a left join vb v on v.id = a.mgr order by 1 for no key update of a;
select a.*, b.* from em a, base b where a.id = b.id and a.id < 2 for update of a for share of b;
select (select b.k from base b join em e on e.id = b.id where e.id = x.id for update of b) from em x where id = 3 for update;
----
ROLLBACK
BEGIN
id:int4|k:int4
1|NULL
2|200
3|300
id:int4|k:int4
1|NULL
2|100
3|100
id:int4|mgr:int4|n:int4|id:int4|k:int4
1|NULL|10|1|100
k:int4
300

\session b
select id from em order by id for update skip locked;
select id from base order by id for share nowait;
select id from base order by id for update skip locked;
----
id:int4
ERROR 55P03: could not obtain lock on row in relation "base"
id:int4
2

\session a
commit;
----
COMMIT

# A row that has changed is joined again: with the same partners.
\session a
begin;
update em set mgr = 3, n = n + 1 where id = 2;
update em set n = n + 1 where id = 3;
----
BEGIN
UPDATE 1
UPDATE 1

\session b
begin;
\waits
select a.id, a.n, a.mgr, b.id as b from em a join em b on a.mgr = b.id order by a.id for update of a;
----
BEGIN

\session a
commit;
----
COMMIT

\session b
\answer
commit;
----
id:int4|n:int4|mgr:int4|b:int4
3|31|1|1
COMMIT

# So is the right side of an outer join, and the condition of WHERE is looked at again.
\session a
begin;
update em set mgr = 2, n = 0 where id = 3;
update em set n = 99 where id = 1;
----
BEGIN
UPDATE 1
UPDATE 1

\session b
begin;
\waits
select a.id, a.n, a.mgr, b.k from em a left join base b on a.mgr = b.id where a.n < 50 order by a.id for update of a;
----
BEGIN

\session a
commit;
----
COMMIT

\session b
\answer
commit;
----
id:int4|n:int4|mgr:int4|k:int4
2|21|3|300
3|0|2|NULL
COMMIT

# Several tables, of which one row has changed for all partners.
\session a
begin;
update base set k = 101 where id = 1;
update em set n = 7 where id = 2;
delete from em where id = 1;
----
BEGIN
UPDATE 1
UPDATE 1
DELETE 1

\session b
begin;
\waits
select a.id, a.n, b.id, b.k from em a, base b where b.id < 3 and a.n + b.k < 300 order by 1, 3 for update;
----
BEGIN

\session a
commit;
----
COMMIT

\session b
\answer
commit;
----
id:int4|n:int4|id:int4|k:int4
2|7|1|101
2|7|2|200
3|0|1|101
3|0|2|200
COMMIT

# At REPEATABLE READ that is a conflict.
begin isolation level repeatable read;
select count(*) from em;
----
BEGIN
count:int8
2

\session a
update em set n = 8 where id = 2;
----
UPDATE 1

\session b
select a.id from em a join base b using (id) for update of a;
rollback;
----
ERROR 40001: could not serialize access due to concurrent update
DETAIL: write conflict on "t\x00\x00@\x00r\x81\x02": committed at 100000.*, after 100000.*
HINT: The transaction might succeed if retried.
ROLLBACK

# A row that the transaction has changed itself, and one that it has locked before.
begin;
update em set n = 9 where id = 2;
select a.id, a.n, b.k from em a join base b using (id) where a.n = 9 for update;
rollback;
explain (costs off) select a.id from em a join base b using (id) for update of a;
----
BEGIN
UPDATE 1
id:int4|n:int4|k:int4
2|9|200
ROLLBACK
LockRows
  ->  Hash Join
        Hash Cond: (a.id = b.id)
        ->  Full Scan on em a
        ->  Full Scan on base b

# Errors.
select a.id from em a, base b for update of c;
select * from em a left join base b on a.id = b.id for update;
select * from em a full join base b on a.id = b.id for share of a;
select a.id from em a, generate_series(1, 2) g for update of g;
with c as (select 1) select a.id from em a, c for update of c;
select a.id from em a join (base b join base c on true) j on true for update of j;
select a.id from em a join (base b join base c on true) j on true for update;
select * from em a, (select * from base) s for update;
select * from em a, vb for update of vb;
select * from em a, pg_class c for update of c;
select a.id, c.relname from em a, pg_class c where c.relname = 'em' and a.id = 3 for update of a;
select a.id, generate_series(1, 2) from em a, base b for update of a;
select count(*) from em a, base b for update of a;
----
ERROR 42P01: relation "c" in FOR UPDATE clause not found in FROM clause [at 45]
ERROR 0A000: FOR UPDATE cannot be applied to the nullable side of an outer join
ERROR 0A000: FOR SHARE cannot be applied to the nullable side of an outer join
ERROR 0A000: FOR UPDATE cannot be applied to a function [at 62]
ERROR 0A000: FOR UPDATE cannot be applied to a WITH query [at 61]
ERROR 0A000: FOR UPDATE cannot be applied to a join [at 81]
ERROR 0A000: row locks of a view, a sub-query or a system catalog here are not supported yet [at 1]
ERROR 0A000: row locks of a view, a sub-query or a system catalog here are not supported yet [at 1]
ERROR 0A000: row locks of a view, a sub-query or a system catalog here are not supported yet [at 38]
ERROR 0A000: row locks of a view, a sub-query or a system catalog here are not supported yet [at 46]
id:int4|relname:name
3|em
ERROR 0A000: FOR UPDATE is not allowed with set-returning functions in the target list
ERROR 0A000: FOR UPDATE is not allowed with DISTINCT or aggregate functions
