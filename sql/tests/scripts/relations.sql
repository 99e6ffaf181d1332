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

# The alias of a join with USING has one column of each that is merged.
create table em (id int primary key, dept text, sal int);
insert into em values (1,'a',10),(2,'a',20),(3,'b',30),(4,'b',40),(5,'c',null);
select * from (em a join em b using (id)) j where j.id = 1;
select j.id, id, j.* from (em a join em b using (id)) j(k, id) where k = 1;
select id, j.id from (em a full join (values (6)) b(id) using (id)) j order by 1 desc limit 2;
select j from (em a join em b using (id, dept)) j where id = 1;
select * from (em a natural join em b) j where id = 1;
select * from (em a join em b on a.id = b.id) j(a,b,c) where a = 1;
select count(*) from (em a join em b using (id)) j join em c using (id);
select j.sal from (em a join em b using (id)) j;
----
CREATE TABLE
INSERT 0 5
id:int4|dept:text|sal:int4|dept:text|sal:int4
1|a|10|a|10
id:text|id:text|k:int4|id:text|sal:int4|dept:text|sal:int4
a|a|1|a|10|a|10
id:int4|id:int4
6|6
5|5
j:record
(1,a,10,10)
id:int4|dept:text|sal:int4
1|a|10
a:int4|b:text|c:int4|id:int4|dept:text|sal:int4
1|a|10|1|a|10
count:int8
5
ERROR 42702: column reference "sal" is ambiguous [at 8]

# ANY and ALL over VALUES and over rows.
select 1 = any(values (1),(2)), 3 = some (values (1),(2)), 3 <> all (values (1),(2));
select 2 = any (values (1),(2) order by 1 limit 1), (1 = any (values (1), ((2)))) is true;
select (1,2) = any(select 1,2), (1,2) <> all (select 1,2), (1,3) <> all (select 1,2), row(1,2) = any(select 1,2);
select (1,2) = any(values (1,2));
select 1 union all (values (2)) order by 1;
select (1,2) = any(select 1,2,3);
select (1,2) = any(select 1);
select (1,2) not in (select 1);
select 1 in (select 1, 2);
select (1,2) in (select 1, true);
select 1 = any(select 1, 2);
select (1,2) < any(select 1,3);
----
?column?:bool|?column?:bool|?column?:bool
t|f|t
?column?:bool|?column?:bool
f|t
?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|f|t|t
?column?:bool
t
?column?:int4
1
2
ERROR 42601: subquery has too many columns [at 14]
ERROR 42601: subquery has too few columns [at 14]
ERROR 42601: subquery has too few columns [at 14]
ERROR 42601: subquery has too many columns [at 10]
ERROR 42883: operator does not exist: integer = boolean [at 14]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
ERROR 42601: subquery has too many columns [at 10]
ERROR 0A000: this comparison of a row with a sub-query is not supported yet [at 9]

# A recursion keeps the types of its first rows, their modifiers too.
with recursive r(n) as (select '1'::varchar(5) union all select n||'x' from r where length(n)<3) select * from r;
with recursive r(n) as (select '1'::varchar(5) union all select (n||'x')::varchar(5) from r where length(n)<3) select * from r;
with recursive r(n) as (select 1.5::numeric(4,2) union all select n+1 from r where n<3) select * from r;
with recursive r(n) as (select null::varchar(3) union all select 'abcd' from r where n is null) select * from r;
with recursive r(n) as (select '1' union all select n||'x' from r where length(n)<3) select * from r;
with recursive r(n) as (select null union all select 1 from r where n is null) select * from r;
----
ERROR 42804: recursive query "r" column 1 has type character varying(5) in non-recursive term but type character varying overall [at 32]
HINT: Cast the output of the non-recursive term to the correct type.
n:varchar
1
1x
1xx
ERROR 42804: recursive query "r" column 1 has type numeric(4,2) in non-recursive term but type numeric overall [at 32]
HINT: Cast the output of the non-recursive term to the correct type.
ERROR 42804: recursive query "r" column 1 has type character varying(3) in non-recursive term but type character varying overall [at 32]
HINT: Cast the output of the non-recursive term to the correct type.
n:text
1
1x
1xx
ERROR 42804: recursive query "r" column 1 has type text in non-recursive term but type integer overall [at 32]
HINT: Cast the output of the non-recursive term to the correct type.

# A function that is the first item of a join: of a sub-query, and beside other items.
create table lt (id int primary key, tags text[]);
create table lb (id int primary key, k int);
insert into lt values (1, '{a,b}'), (2, '{c}'), (3, '{}');
insert into lb values (1, 10), (2, 20);
select id, (select count(*) from unnest(e.tags) u join lt f on true) from lt e order by id;
select id, array(select u || n || b.id from unnest(e.tags) with ordinality w (u, n) join lb b on b.id = w.n where b.k > e.id order by 1) from lt e order by id;
select id, (with c as (select e.id as i) select string_agg(u || i, ',') from unnest(e.tags) u, c) from lt e order by id;
select e.id, q, b.id from lt e, generate_series(1, e.id) q join lb b on b.id = q order by 1, 2;
select e.id, q, b.id from lt e, generate_series(1, e.id) q left join lb b on b.id = q order by 1, 2;
select e.id, q, b.id from lt e, generate_series(1, e.id) q right join lb b on b.id = q order by 1, 3;
select e.id, q, b.id from lt e, generate_series(1, e.id) q full join lb b on b.id = q order by 1, 2, 3;
select e.id, q, b.id from lt e left join (generate_series(2, e.id) q join lb b on b.id = q) on true order by 1, 2;
select e.id, x from lt e, lb b join lateral (select e.id * 100 + b.id) l (x) on true order by 1, 2;
select e.id, x from lt e, generate_series(1, e.id) q join lateral (select e.id * 10 + q) l (x) on x > 11 order by 1, 2;
select e.id, h.x from lt e, lateral (select e.id as x) h join lb b on b.id = h.x order by 1;
select o.k, (select string_agg(e.id || ':' || q || ':' || b.k, ' ' order by e.id) from lt e, generate_series(e.id, o.id) q join lb b on b.k = o.k) from lb o order by 1;
select o.id, (select count(*) from lb b right join unnest(array[o.id, 5]) u on b.id = u) from lb o order by 1;
select e.id, q, b.id from lt e, generate_series(1, e.id) q join lb b on b.id = e.id;
select e.id, b.id from lt e right join generate_series(1, e.id) q on true;
select e.id, x from lt e, generate_series(1, 1) g join (select e.id) l (x) on true;
select e.id, x from lt e, generate_series(1, 1) g join (select * from lb, generate_series(1, e.id) h join lb c on true) l (x) on true;
----
CREATE TABLE
CREATE TABLE
INSERT 0 3
INSERT 0 2
id:int4|count:int8
1|6
2|3
3|0
id:int4|array:_text
1|{a11,b22}
2|{c11}
3|{}
id:int4|string_agg:text
1|a1,b1
2|c2
3|NULL
id:int4|q:int4|id:int4
1|1|1
2|1|1
2|2|2
3|1|1
3|2|2
id:int4|q:int4|id:int4
1|1|1
2|1|1
2|2|2
3|1|1
3|2|2
3|3|NULL
id:int4|q:int4|id:int4
1|1|1
1|NULL|2
2|1|1
2|2|2
3|1|1
3|2|2
id:int4|q:int4|id:int4
1|1|1
1|NULL|2
2|1|1
2|2|2
3|1|1
3|2|2
3|3|NULL
id:int4|q:int4|id:int4
1|NULL|NULL
2|2|2
3|2|2
id:int4|x:int4
1|101
1|102
2|201
2|202
3|301
3|302
id:int4|x:int4
2|21
2|22
3|31
3|32
3|33
id:int4|x:int4
1|1
2|2
k:int4|string_agg:text
10|1:1:10
20|1:1:20 1:2:20 2:2:20
id:int4|count:int8
1|2
2|2
ERROR 42P01: invalid reference to FROM-clause entry for table "e" [at 80]
HINT: There is an entry for table "e", but it cannot be referenced from this part of the query.
ERROR 42P10: invalid reference to FROM-clause entry for table [at 40]
DETAIL: The combining JOIN type must be INNER or LEFT for a LATERAL reference.
ERROR 42P01: invalid reference to FROM-clause entry for table "e" [at 64]
HINT: There is an entry for table "e", but it cannot be referenced from this part of the query.
ERROR 42P01: invalid reference to FROM-clause entry for table "e" [at 94]
HINT: There is an entry for table "e", but it cannot be referenced from this part of the query.

# Expressions order no set operation, but a query in parentheses.
create table so (id int);
insert into so values (1), (3), (2);
select id from so union select id from so order by id + 1;
select id from so union select id from so order by id, lower('a');
select id from so except select 1 order by -id limit 1;
select id from so union select id from so order by so.id;
select id from so union select id from so order by x;
select id from so union select id from so order by (id) desc;
(select id from so) order by -id;
values (1), (2) order by column1 * -1;
drop table so;
----
CREATE TABLE
INSERT 0 3
ERROR 0A000: invalid UNION/INTERSECT/EXCEPT ORDER BY clause [at 52]
DETAIL: Only result column names can be used, not expressions or functions.
HINT: Add the expression/function to every SELECT, or move the UNION into a FROM clause.
ERROR 0A000: invalid UNION/INTERSECT/EXCEPT ORDER BY clause [at 56]
DETAIL: Only result column names can be used, not expressions or functions.
HINT: Add the expression/function to every SELECT, or move the UNION into a FROM clause.
ERROR 0A000: invalid UNION/INTERSECT/EXCEPT ORDER BY clause [at 45]
DETAIL: Only result column names can be used, not expressions or functions.
HINT: Add the expression/function to every SELECT, or move the UNION into a FROM clause.
ERROR 42P01: missing FROM-clause entry for table "so" [at 52]
ERROR 42703: column "x" does not exist [at 52]
id:int4
3
2
1
id:int4
3
2
1
column1:int4
2
1
DROP TABLE
