create table a (id int primary key, x int, s text);
create table b (id int primary key, aid int, v numeric);
insert into a values (1, 10, 'one'), (2, 20, 'two'), (3, null, 'three');
insert into b values (1, 1, 1.5), (2, 1, 2.5), (3, 2, 3.5), (4, 9, 4.5);
----
CREATE TABLE
CREATE TABLE
INSERT 0 3
INSERT 0 4

select a.id, b.id, b.v from a join b on a.id = b.aid order by 1, 2;
select a.id, b.id from a left join b on a.id = b.aid order by 1, 2;
select a.id, b.id from a right join b on a.id = b.aid order by 1, 2;
select a.id, b.id from a full join b on a.id = b.aid order by 1, 2;
select * from a, b where a.id = b.aid and b.v > 2 order by b.id;
select count(*) from a cross join b;
select * from a join b using (id) order by id;
select a.id, b.* from a natural join b order by 1;
----
id:int4|id:int4|v:numeric
1|1|1.5
1|2|2.5
2|3|3.5
id:int4|id:int4
1|1
1|2
2|3
3|NULL
id:int4|id:int4
1|1
1|2
2|3
NULL|4
id:int4|id:int4
1|1
1|2
2|3
3|NULL
NULL|4
id:int4|x:int4|s:text|id:int4|aid:int4|v:numeric
1|10|one|2|1|2.5
2|20|two|3|2|3.5
count:int8
12
id:int4|x:int4|s:text|aid:int4|v:numeric
1|10|one|1|1.5
2|20|two|1|2.5
3|NULL|three|2|3.5
id:int4|id:int4|aid:int4|v:numeric
1|1|1|1.5
2|2|1|2.5
3|3|2|3.5

select aid, count(*), sum(v) from b group by aid having count(*) > 0 order by aid;
select s, x + 1 as y, max(v) from a join b on a.id = b.aid group by a.id order by s;
select aid % 2 as odd, count(*) from b group by odd order by 1;
select x, count(*) from a group by 1 order by 1 nulls first;
select aid from b group by v;
select count(*) from a group by ();
----
aid:int4|count:int8|sum:numeric
1|2|4.0
2|1|3.5
9|1|4.5
s:text|y:int4|max:numeric
one|11|2.5
two|21|3.5
odd:int4|count:int8
0|1
1|3
x:int4|count:int8
NULL|1
10|1
20|1
ERROR 42803: column "b.aid" must appear in the GROUP BY clause or be used in an aggregate function [at 8]
count:int8
3

select id, (select count(*) from b where b.aid = a.id) as n from a order by id;
select id from a where exists (select 1 from b where b.aid = a.id) order by id;
select id from a where not exists (select from b where b.aid = a.id) order by id;
select id from a where id in (select aid from b) order by id;
select id from a where id not in (select aid from b) order by id;
select id from a where (id, x) in (select aid, 10 from b);
select id from a where x > all (select v from b) order by id;
select array(select id from b order by id desc);
select (select id from a);
select (select id from a where id > 99) is null;
select * from a where id = (select max(aid) from b where aid < 5);
----
id:int4|n:int8
1|2
2|1
3|0
id:int4
1
2
id:int4
3
id:int4
1
2
id:int4
3
id:int4
1
id:int4
1
2
array:_int4
{4,3,2,1}
ERROR 21000: more than one row returned by a subquery used as an expression
?column?:bool
t
id:int4|x:int4|s:text
2|20|two

select * from (select id, x * 2 as y from a) t where y > 20;
select * from (values (1, 'a'), (2, 'b')) v (n, l) order by n desc;
select 1 union select 2 union all select 1 order by 1;
select id from a intersect select aid from b order by 1;
select id from a except select aid from b order by 1;
select null union select 1 order by 1 nulls first;
select 'a' union all select null;
----
id:int4|y:int4
2|40
n:int4|l:text
2|b
1|a
?column?:int4
1
1
2
id:int4
1
2
id:int4
3
?column?:int4
NULL
1
?column?:text
a
NULL

with t as (select id from a where id < 3) select * from t t1, t t2 order by 1, 2;
with recursive r (n) as (select 1 union all select n + 1 from r where n < 5) select * from r;
with recursive g as (select 1 as n union select (n * 3) % 7 from g) select * from g order by n;
select * from generate_series(1, 3) g;
select * from generate_series(1, 3) with ordinality as g (v, o);
select a.id, g from a, generate_series(1, a.id) g order by 1, 2;
select a.id, l.v from a left join lateral (select v from b where b.aid = a.id order by v desc limit 1) l on true order by 1;
select unnest(array[1, 2]), generate_series(1, 3);
select distinct on (aid) aid, v from b order by aid, v desc;
select * from unnest(array['x', 'y']) u;
select * from jsonb_each('{"a": 1, "b": [2]}');
----
id:int4|id:int4
1|1
1|2
2|1
2|2
n:int4
1
2
3
4
5
n:int4
1
2
3
4
5
6
g:int4
1
2
3
v:int4|o:int8
1|1
2|2
3|3
id:int4|g:int4
1|1
2|1
2|2
3|1
3|2
3|3
id:int4|v:numeric
1|2.5
2|3.5
3|NULL
unnest:int4|generate_series:int4
1|1
2|2
NULL|3
aid:int4|v:numeric
1|2.5
2|3.5
9|4.5
u:text
x
y
key:text|value:jsonb
a|1
b|[2]

update a set x = (select sum(v)::int from b where b.aid = a.id) where id in (select aid from b);
select * from a order by id;
insert into b select id + 10, aid, v from b where aid = 1;
select count(*) from b;
delete from b where aid not in (select id from a);
select count(*) from b;
----
UPDATE 2
id:int4|x:int4|s:text
1|4|one
2|4|two
3|NULL|three
INSERT 0 2
count:int8
6
DELETE 1
count:int8
5

explain select a.id from a join b on a.id = b.aid where a.x = 1;
explain select * from b join a on a.id = b.aid where b.id = 1;
explain select count(*) from b group by aid;
explain select id from a where id in (select aid from b);
explain select * from a where id = (select 1);
----
Hash Join
  Hash Cond: (a.id = b.aid)
  ->  Full Scan on a
        Filter: (x = 1)
  ->  Full Scan on b
Nested Loop
  ->  Point Get on b
        Key: (id = 1)
  ->  Point Get on a
        Key: (id = $0)
HashAggregate
  Group Key: aid
  ->  Full Scan on b
Full Scan on a
  Filter: (id = ANY (SubPlan 1))
  SubPlan 1
    ->  Full Scan on b
Point Get on a
  Key: (id = (SubPlan 1))
  SubPlan 1
    ->  Result

# Subscripts of qualified columns and of jsonb; unnest of several arrays.
create table ar (id int primary key, a int[], j jsonb);
insert into ar values (1, '{1,2,3}', '{"n": {"m": [5, 6]}}'), (2, null, '[10, 20]');
select a[2], ar.a[2], ar.a[2:3], j['n'], ar.j['n']['m'][1], (ar.j -> 'n')['m'] from ar order by id;
select id, j[0], j[-1], j[id], j[null] from ar order by id;
select j[1.5] from ar;
select j[1:2] from ar;
select id from ar where ar.j['n'] is not null;
select * from unnest('{1,2,3}'::int[], '{a,b}'::text[]);
select * from unnest('{1,2,3}'::int[], '{a,b}'::text[]) as t (x, y) order by x desc;
select ar.id, u.* from ar, unnest(ar.a, '{x,y}'::text[]) u (n, t) order by 1, 2;
create table un (x int primary key, y text);
insert into un select * from unnest('{7,8}'::int[], '{seven,eight}'::text[]) returning *;
select * from unnest('{}'::int[], null::text[]);
drop table ar, un;
----
CREATE TABLE
INSERT 0 2
a:int4|a:int4|a:_int4|j:jsonb|j:jsonb|?column?:jsonb
2|2|{2,3}|{"m": [5, 6]}|6|[5, 6]
NULL|NULL|NULL|NULL|NULL|NULL
id:int4|j:jsonb|j:jsonb|j:jsonb|j:jsonb
1|NULL|NULL|NULL|NULL
2|10|20|NULL|NULL
ERROR 42804: subscript type numeric is not supported [at 10]
HINT: jsonb subscript must be coercible to either integer or text.
ERROR 42804: jsonb subscript does not support slices [at 8]
id:int4
1
unnest:int4|unnest:text
1|a
2|b
3|NULL
x:int4|y:text
3|NULL
2|b
1|a
id:int4|n:int4|t:text
1|1|x
1|2|y
1|3|NULL
2|NULL|x
2|NULL|y
CREATE TABLE
x:int4|y:text
7|seven
8|eight
INSERT 0 2
unnest:int4|unnest:text
DROP TABLE

# A recursive query names itself once, in few places, and nothing is around its UNION.
with recursive r (n) as (select n from r union all select 1) select * from r;
with recursive r (n) as (select 1 union all select x.n from r x, r y) select * from r;
with recursive r (n) as (select 1 union all select n + 1 from generate_series(1, 3) n where n not in (select n from r)) select * from r;
with recursive r (n) as (select 1 union all select r.n from generate_series(1, 3) g left join r on r.n = g) select * from r;
with recursive r (n) as (select 1 union all select r.n from r full join generate_series(1, 3) g on r.n = g) select * from r;
with recursive r (n) as (select 1 union all (select 5 except select n from r)) select * from r;
with recursive r (n) as (select 1 union all (select n from r intersect all select 1)) select * from r;
with recursive r (n) as (with s as (select n from r) select 1 union all select r.n from r, s) select * from r;
with recursive r (n) as (select n from r) select * from r;
with recursive r (n) as (select 1 intersect select n from r) select * from r;
with recursive r (n) as (select 1 union all select n + 1 from r where n < 3 order by n) select * from r;
with recursive r (n) as (select 1 union all select n + 1 from r where n < 3 offset 1) select * from r;
with recursive r (n) as (select 1 union all select n + 1 from r where n < 3 limit 2) select * from r;
with recursive r (n) as (select 1 union all select n + 1 from r where n < 3 for update) select * from r;
with recursive r (n) as (select 1 union all select count(*)::int from r) select * from r;
with recursive x (n) as (select 1 union all select n from y), y (n) as (select 1 union all select n from x) select * from x;
with x as (select nope), x as (select 1) select 1;
----
ERROR 42P19: recursive reference to query "r" must not appear within its non-recursive term [at 40]
ERROR 42P19: recursive reference to query "r" must not appear more than once [at 66]
ERROR 42P19: recursive reference to query "r" must not appear within a subquery [at 117]
ERROR 42P19: recursive reference to query "r" must not appear within an outer join [at 95]
ERROR 42P19: recursive reference to query "r" must not appear within an outer join [at 61]
ERROR 42P19: recursive reference to query "r" must not appear within EXCEPT [at 76]
ERROR 42P19: recursive reference to query "r" must not appear within INTERSECT [at 60]
ERROR 42P19: recursive reference to query "r" must not appear within a subquery [at 51]
ERROR 42P19: recursive query "r" does not have the form non-recursive-term UNION [ALL] recursive-term [at 16]
ERROR 42P19: recursive query "r" does not have the form non-recursive-term UNION [ALL] recursive-term [at 16]
ERROR 0A000: ORDER BY in a recursive query is not implemented [at 86]
ERROR 0A000: OFFSET in a recursive query is not implemented [at 84]
ERROR 0A000: LIMIT in a recursive query is not implemented [at 83]
ERROR 0A000: FOR UPDATE/SHARE in a recursive query is not implemented
ERROR 42P19: aggregate functions are not allowed in a recursive query's recursive term [at 52]
ERROR 0A000: mutual recursion between WITH items is not implemented [at 16]
ERROR 42712: WITH query name "x" specified more than once [at 26]

# What is allowed: names that an inner WITH gives, queries of WITH over the last step, names from further on.
with recursive r (n) as (select 1 union all select r.n + 1 from r left join generate_series(1, 2) g on g = r.n where r.n < 3) select * from r;
with recursive r (n) as (select 1 union all (select n + 1 from r except select 5)) select * from r;
with recursive r (n) as ((select 1 union all select n + 1 from r where n < 3)) select * from r;
with recursive r (n) as (select 1 union all (with r as (select 7 as n) select n from r)) select * from r;
with recursive r (n) as (with s as (select 3 as top) select 1 union all select n + 1 from r, s where n < top) select * from r;
with recursive r (n) as (select 1 union all (with s as (select n + 1 as n from r) select n from s where n < 4)) select * from r;
with recursive r (n) as (select 2 union all select 1 order by 1 limit 1) select * from r;
with recursive x as (select n + 1 as m from y), y as (select 1 as n) select * from x;
----
n:int4
1
2
3
n:int4
1
2
3
4
n:int4
1
2
3
n:int4
1
7
n:int4
1
2
3
n:int4
1
2
3
n:int4
1
m:int4
2

# Names in any part of a query count.
with recursive a as (select sum(1) over (rows between (select n from b) preceding and current row) as s), b as (select 2 as n) select * from a;
with recursive a as (select x from unnest(array(select n from b)) u(x)), b as (select 2 as n) select * from a;
with recursive a as (select * from (select 1 as one) q, lateral (select n from b) z), b as (select 2 as n) select * from a;
with recursive a as (select make_interval(days => (select n from b)) as q), b as (select 3 as n) select * from a;
with recursive x as (select 1 as n union all values ((select n from x))) select * from x;
with recursive x as (select 1 as n union all select n + 1 from x where n < 3 group by grouping sets ((n), ((select count(*) from x)))) select * from x;
----
s:int8
1
x:int4
2
one:int4|n:int4
1|2
q:interval
3 days
ERROR 42P19: recursive reference to query "x" must not appear within a subquery [at 69]
ERROR 42P19: recursive reference to query "x" must not appear within a subquery [at 130]

# A sub-query over a WITH inside of a recursion is evaluated at each step.

with recursive r(n) as (select 1 union all (with w as (select n+1 m from r) select m from w where m in (select m from w) and m < 6)) select count(*) from r;
with recursive base(id, parent) as (values (1, null), (2, 1), (3, 2), (4, 3)), t(id) as (select id from base where parent is null union all (with k as (select b.id from base b join t on b.parent = t.id) select id from k where id <= (select max(id) from k))) select array_agg(id) from t;
----
count:int8
5
array_agg:_int4
{1,2,3,4}

# A query of WITH runs no farther than its readers ask. All of them share its rows.
with recursive r (n) as (select 1 union all select n + 1 from r) select n from r limit 3;
with recursive r (n) as (select 1 union all select n * 2 from r) select n from r where n > 100 limit 1;
with recursive r (n) as (select 1 union select n + 1 from r) select exists (select 1 from r where n = 5), (select n from r limit 1);
with recursive r (n) as (select 1 union all select n + 1 from r) select a.n, b.n from (select n from r limit 2) a, (select n from r limit 3) b order by 1, 2;
with recursive r (n) as (select 1 union all select n + 1 from r), s as (select n * 10 as m from r) select m from s offset 2 limit 2;
with s as materialized (select 6 / (3 - n) as q from generate_series(1, 5) n) select q from s limit 2;
select g, l.n from generate_series(1, 3) g, lateral (with recursive r (n) as (select g union all select n + g from r) select n from r limit 2) l;
with recursive r (n) as (select 1 union all select n + 1 from r) select n, 1 / (n - 3) from r limit 5;
begin;
declare c cursor for with recursive r (n) as (select 1 union all select n + 1 from r) select n from r;
fetch 2 from c;
fetch 1 from c;
rollback;
----
n:int4
1
2
3
n:int4
128
exists:bool|n:int4
t|1
n:int4|n:int4
1|1
1|2
1|3
2|1
2|2
2|3
m:int4
30
40
q:int4
3
6
g:int4|n:int4
1|1
1|2
2|2
2|4
3|3
3|6
ERROR 22012: division by zero
BEGIN
DECLARE CURSOR
n:int4
1
2
FETCH 2
n:int4
3
FETCH 1
ROLLBACK

# Tables that stand in FROM and are out of reach, and those that do not.
create table ra (id int);
create table rb (id int);
select * from ra x, rb y join rb z on x.id = z.id;
select * from ra x, (select x.id) s;
select * from ra x, (select * from rb y join rb z on x.id = z.id) s;
select * from ra x, rb y join rb z on w.id = z.id;
select * from ra x join rb y on z.id = x.id, rb z;
select * from ra x, lateral (select x.id) s;
select (select z.id) from ra x, rb y;
drop table ra, rb;
----
CREATE TABLE
CREATE TABLE
ERROR 42P01: invalid reference to FROM-clause entry for table "x" [at 39]
HINT: There is an entry for table "x", but it cannot be referenced from this part of the query.
ERROR 42P01: invalid reference to FROM-clause entry for table "x" [at 29]
HINT: There is an entry for table "x", but it cannot be referenced from this part of the query.
ERROR 42P01: invalid reference to FROM-clause entry for table "x" [at 54]
HINT: There is an entry for table "x", but it cannot be referenced from this part of the query.
ERROR 42P01: missing FROM-clause entry for table "w" [at 39]
ERROR 42P01: missing FROM-clause entry for table "z" [at 33]
id:int4|id:int4
ERROR 42P01: missing FROM-clause entry for table "z" [at 16]
DROP TABLE
