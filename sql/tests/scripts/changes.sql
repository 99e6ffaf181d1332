# UPDATE ... FROM: the first match counts.
create table t (id int primary key, v int, s text);
create table f (k int, w int);
create table h (v int, s text);
insert into t values (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c'), (4, 40, 'd');
insert into f values (1, 100), (2, 200), (2, 200), (5, 500);
insert into h values (1, 'x'), (1, 'y'), (2, 'z');
update t set v = w from f where k = id returning *;
update t set v = t.v + x.n, s = x.s from (values (3, 1, 'cc'), (4, 2, 'dd')) as x (id, n, s) where x.id = t.id returning t.id, t.v, t.s, x.n;
update t as u set s = u.s || '!' from f, f as g where f.k = u.id and g.k = f.k and g.w < 150 returning u.id, u.s;
update t set v = 0 from f left join h on h.v = f.k where f.k = t.id and h.s = 'z' returning id;
update t set v = a.v from t as a where a.id = t.id + 1 returning t.*;
select * from t order by id;
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
INSERT 0 4
INSERT 0 4
INSERT 0 3
id:int4|v:int4|s:text|k:int4|w:int4
1|100|a|1|100
2|200|b|2|200
UPDATE 2
id:int4|v:int4|s:text|n:int4
3|31|cc|1
4|42|dd|2
UPDATE 2
id:int4|s:text
1|a!
UPDATE 1
id:int4
2
UPDATE 1
id:int4|v:int4|s:text
1|0|a!
2|31|b
3|42|cc
UPDATE 3
id:int4|v:int4|s:text
1|0|a!
2|31|b
3|42|cc
4|42|dd

# A table without a primary key.
update h set s = h.s || f.w from f where f.k = h.v returning h.v, h.s;
delete from h using f where f.k = h.v and f.w > 100 returning h.*, f.w;
select * from h order by s;
----
v:int4|s:text
1|x100
1|y100
2|z200
UPDATE 3
v:int4|s:text|w:int4
2|z200|200
DELETE 1
v:int4|s:text
1|x100
1|y100

# DELETE ... USING.
delete from t using f where f.k = t.id and f.k = 2 returning id, k, w;
delete from t using (select 3 as id) as x, f where x.id = t.id;
delete from t as u using t as v where u.id = v.id - 3 returning u.id, v.id;
select * from t order by id;
----
id:int4|k:int4|w:int4
2|2|200
DELETE 1
DELETE 1
id:int4|id:int4
1|4
DELETE 1
id:int4|v:int4|s:text
4|42|dd

# What FROM and USING refuse.
update t set v = 1 from t where true;
delete from t using f as t where true;
update t set v = 1 from f where v = w and nope = 1;
update t set v = k from f as x where f.k = 1;
update t set f.k = 1 from f;
update t set id = k, v = k, id = 1 from f;
----
ERROR 42712: table name "t" specified more than once
ERROR 42712: table name "t" specified more than once
ERROR 42703: column "nope" does not exist [at 43]
ERROR 42P01: invalid reference to FROM-clause entry for table "f" [at 38]
HINT: Perhaps you meant to reference the table alias "x".
ERROR 42703: column "f" of relation "t" does not exist [at 14]
ERROR 42601: multiple assignments to same column "id"

# Explained.
explain update t set v = w from f where k = id;
explain update t set v = x.n from (values (3, 1)) as x (id, n) where x.id = t.id;
explain delete from t using f where f.k = t.id and f.w > 1;
----
Update on t
  ->  Hash Join
        Hash Cond: (t.id = f.k)
        ->  Full Scan on t
        ->  Full Scan on f
Update on t
  ->  Nested Loop
        ->  Result
        ->  Point Get on t
              Key: (id = $0)
Delete on t
  ->  Hash Join
        Hash Cond: (t.id = f.k)
        ->  Full Scan on t
        ->  Full Scan on f
              Filter: (w > 1)

# Several columns of one sub-query.
create table m (a int primary key, b int, c text);
insert into m values (1, 2, 'x'), (2, 3, 'y'), (3, 4, null);
update m set (b, c) = (select w, 'w' || w from f where k = m.a limit 1) returning *;
update m set (b) = (select 7), c = (select max(c) from m) where a = 1 returning *;
update m set (b, c) = (select 1);
update m set (b, c) = (select 1, 2, 3);
update m set (b, b) = (select 1, 2);
update m set (b, c) = (select 1, true) where a = 1 returning *;
update m set (b, c) = (select w, 'x' from f where k = 2);
update m set (a, b) = (b, a) where a = 1 returning *;
update m set (b, c) = (select f.w, f.k from f where f.k = m.a) from h;
----
CREATE TABLE
INSERT 0 3
a:int4|b:int4|c:text
1|100|w100
2|200|w200
3|NULL|NULL
UPDATE 3
a:int4|b:int4|c:text
1|7|w200
UPDATE 1
ERROR 42601: number of columns does not match number of values [at 23]
ERROR 42601: number of columns does not match number of values [at 23]
ERROR 42601: multiple assignments to same column "b"
a:int4|b:int4|c:text
1|1|true
UPDATE 1
ERROR 21000: more than one row returned by a subquery used as an expression
a:int4|b:int4|c:text
1|1|true
UPDATE 1
ERROR 21000: more than one row returned by a subquery used as an expression

# Sub-queries in every clause.
insert into m select k + 10, w, (select s from h limit 1) from f where not exists (select from m where a = k + 10) and w > 300;
insert into m values ((select max(a) + 1 from m), (select count(*) from m), 'n') returning a, b, (select count(*) from f);
insert into m values (1, 1, 'dup') on conflict (a) do update set b = (select max(w) from f), c = excluded.c || m.a || (select count(*) from m) where m.b < (select 1000) returning *;
insert into m values (1, 1, 'dup') on conflict (a) do update set b = 0 where exists (select from f where w > 10000) returning *;
insert into m values (1, 1, 'dup') on conflict (a) do update set (b, c) = (select w, excluded.c from f where f.k = excluded.a) returning *;
update m set c = (select 'k' || k from f where k = m.a group by k) where a in (select k from f) returning *, (select count(*) from m as x where x.a < m.a);
delete from m where b = (select max(b) from m) or not exists (select from f where k = a) returning a, (select count(*) from m);
select * from m order by a;
----
INSERT 0 1
a:int4|b:int4|count:int8
16|4|4
INSERT 0 1
a:int4|b:int4|c:text
1|500|dup15
INSERT 0 1
a:int4|b:int4|c:text
INSERT 0 0
a:int4|b:int4|c:text
1|100|dup
INSERT 0 1
a:int4|b:int4|c:text|count:int8
1|100|k1|0
2|200|k2|1
UPDATE 2
a:int4|count:int8
3|5
15|5
16|5
DELETE 3
a:int4|b:int4|c:text
1|100|k1
2|200|k2

# WITH before them.
with x as (select k, sum(w) as w from f group by k) insert into m select k * 10, w, 'with' from x returning *;
with x as (select 10 as a, 'u' as c) update m set c = x.c from x where x.a = m.a returning m.*;
with x as (select 20 as a) delete from m using x where m.a = x.a returning m.a;
----
a:int4|b:int4|c:text
10|100|with
20|400|with
50|500|with
INSERT 0 3
a:int4|b:int4|c:text
10|100|u
UPDATE 1
a:int4
20
DELETE 1

# ON CONFLICT and its targets.
create table oc (id int primary key, u text, v int, constraint oc_u unique (u), unique (v, u));
insert into oc values (1, 'a', 1);
insert into oc values (1, 'b', 2) on conflict do nothing;
insert into oc values (2, 'a', 2) on conflict do nothing;
insert into oc values (2, 'a', 2) on conflict (u) do update set v = oc.v + excluded.v returning *;
insert into oc values (3, 'a', 5) on conflict on constraint oc_u do update set v = excluded.v where oc.v > 100 returning *;
insert into oc values (1, 'z', 5) on conflict on constraint oc_pkey do update set u = excluded.u returning *;
insert into oc values (7, 'z', 5) on conflict (u, v) do nothing;
insert into oc values (7, 'z', 5) on conflict (v) do nothing;
insert into oc values (7, 'z', 5) on conflict (id) do nothing;
insert into oc values (7, 'q', 5) on conflict (id) do nothing returning *;
insert into oc values (8, 'r', 1), (8, 's', 2) on conflict (id) do update set v = 0;
insert into oc as o values (7, 'q', 9) on conflict (id) do update set v = o.v + excluded.v returning o.*;
----
CREATE TABLE
INSERT 0 1
INSERT 0 0
INSERT 0 0
id:int4|u:text|v:int4
1|a|3
INSERT 0 1
id:int4|u:text|v:int4
INSERT 0 0
id:int4|u:text|v:int4
1|z|3
INSERT 0 1
ERROR 23505: duplicate key value violates unique constraint "oc_u"
DETAIL: Key (u)=(z) already exists.
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification
ERROR 23505: duplicate key value violates unique constraint "oc_u"
DETAIL: Key (u)=(z) already exists.
id:int4|u:text|v:int4
7|q|5
INSERT 0 1
ERROR 21000: ON CONFLICT DO UPDATE command cannot affect row a second time
HINT: Ensure that no rows proposed for insertion within the same command have duplicate constrained values.
id:int4|u:text|v:int4
7|q|14
INSERT 0 1

# A row that the condition of DO UPDATE leaves alone may be met twice.
create table met (a int primary key, b int);
insert into met values (1, 1);
insert into met values (1, 2), (1, 3), (2, 4) on conflict (a) do update set b = excluded.b where met.b > 5;
select * from met order by a;
----
CREATE TABLE
INSERT 0 1
INSERT 0 1
a:int4|b:int4
1|1
2|4

# ON CONFLICT with expressions and predicates: the unique indexes that match.
create table ocx (id int primary key, email text, grp int, active bool default true, n int default 0);
create unique index ocx_email on ocx (lower(email));
create unique index ocx_grp on ocx (grp) where active;
create unique index ocx_two on ocx (grp, (n + 1)) where n > 5 and grp is not null;
insert into ocx (id, email, grp) values (1, 'Ann', 1);
insert into ocx (id, email, grp) values (2, 'ANN', 2) on conflict (lower(email)) do update set n = ocx.n + 1, email = excluded.email returning *;
insert into ocx (id, email, grp) values (2, 'aNn', 2) on conflict ((lower(email))) do nothing;
insert into ocx (id, email, grp) values (2, 'bob', 1) on conflict (grp) where active do update set n = ocx.n + 10 where ocx.email <> 'é' returning id, n;
insert into ocx (id, email, grp) values (2, 'bob', 1) on conflict (grp)
  where active and n >= 0 do nothing;
insert into ocx (id, email, grp, active) values (2, 'bob', 1, false) on conflict (grp) where active do nothing returning id;
insert into ocx (id, email, grp, n) values (3, 'cid', 9, 7) on conflict ((n + 1), grp) where grp is not null and n > 5 do nothing returning id;
insert into ocx (id, email, grp, n, active) values (4, 'dan', 9, 7, false) on conflict (grp, (1 * n + 1)) where n > 5 and grp > 0 do nothing;
insert into ocx (id, email, grp, n, active) values (4, 'dan', 9, 7, false) on conflict (grp, (n + 1)) where n > 5 and grp > 0 do update set n = 100 returning *;
with x as (insert into ocx as o (id, email) values (1, 'eve') on conflict (id) where o.active do update set email = lower(excluded.email) returning email) select * from x;
insert into ocx (id, email) values (7, 'EVE'), (8, 'fay') on conflict (lower(email)) do nothing returning id;
\params 9 Fay
insert into ocx (id, email) values ($1, $2) on conflict (lower(email)) do update set n = $1 returning id, n;
insert into ocx (id, email) values (7, 'gil') on conflict (upper(email)) do nothing;
insert into ocx (id, email) values (7, 'gil') on conflict (grp) do nothing;
insert into ocx (id, email) values (7, 'gil') on conflict (grp) where n > 0 do nothing;
insert into ocx (id, email) values (7, 'gil') on conflict (lower(nope)) do nothing;
insert into ocx (id, email) values (7, 'gil') on conflict (grp) where nope do nothing;
insert into ocx (id, email) values (7, 'gil') on conflict (email collate "C") do nothing;
select * from ocx order by id;
drop table ocx;
----
CREATE TABLE
CREATE INDEX
CREATE INDEX
CREATE INDEX
INSERT 0 1
id:int4|email:text|grp:int4|active:bool|n:int4
1|ANN|1|t|1
INSERT 0 1
INSERT 0 0
id:int4|n:int4
1|11
INSERT 0 1
INSERT 0 0
id:int4
2
INSERT 0 1
id:int4
3
INSERT 0 1
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification
id:int4|email:text|grp:int4|active:bool|n:int4
3|cid|9|t|100
INSERT 0 1
email:text
eve
id:int4
8
INSERT 0 1
params int4 text
id:int4|n:int4
8|9
INSERT 0 1
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification
ERROR 42703: column "nope" does not exist [at 66]
ERROR 42703: column "nope" does not exist [at 71]
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification
id:int4|email:text|grp:int4|active:bool|n:int4
1|eve|1|t|11
2|bob|1|f|0
3|cid|9|t|100
8|fay|NULL|t|9
DROP TABLE
