# Groups: direct arguments, GROUP BY (), sub-queries as keys, constants, and where errors point to.
create table t (a int, b int, c int);
create table u (id int, d int);
insert into t values (1, 1, 1), (1, 2, 2), (2, 2, 3);
insert into u values (1, 10), (2, 20);
----
CREATE TABLE
CREATE TABLE
INSERT 0 3
INSERT 0 2

# Direct arguments are over the keys of the group.
select percentile_cont(a) within group (order by c) from t;
select percentile_cont(a) within group (order by c) from t group by b;
select percentile_disc(a + b) within group (order by c) from t group by b;
select percentile_disc(a) within group (order by c), a from t group by b;
select percentile_cont((select t.a)) within group (order by c) from t group by b;
select percentile_cont(b / 2.0) within group (order by c) from t group by b order by 1;
select percentile_cont(b / 2.0) within group (order by c), b from t group by b / 2.0 order by 1;
select percentile_cont(b / 2.0) within group (order by c) p, count(*) from t group by b / 2.0 order by 1;
select percentile_cont((select 0.5)) within group (order by c) from t;
select b, percentile_cont((select t.b / 4.0)) within group (order by c) from t group by b order by b;
select percentile_cont(b / 2.0) within group (order by c) filter (where c > 1) from t group by b having percentile_disc(b / 2.0) within group (order by c) > 1;
select percentile_cont(sum(a)) within group (order by c) from t;
----
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 24]
DETAIL: Direct arguments of an ordered-set aggregate must use only grouped columns.
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 24]
DETAIL: Direct arguments of an ordered-set aggregate must use only grouped columns.
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 24]
DETAIL: Direct arguments of an ordered-set aggregate must use only grouped columns.
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 24]
DETAIL: Direct arguments of an ordered-set aggregate must use only grouped columns.
ERROR 42803: subquery uses ungrouped column "t.a" from outer query [at 32]
percentile_cont:float8
1
3
ERROR 42803: column "t.b" must appear in the GROUP BY clause or be used in an aggregate function [at 60]
p:float8|count:int8
1|1
3|2
percentile_cont:float8
2
b:int4|percentile_cont:float8
1|1
2|2.5
percentile_cont:float8
3
ERROR 42803: aggregate function calls cannot be nested [at 24]

# GROUP BY () is one group, also of no rows.
select count(*), sum(a) from t where false group by ();
select 1 from t where false group by ();
select count(*) from t where false group by () having count(*) = 0;
select count(*) from t where false group by () having count(*) > 0;
select count(*) from t where false group by (), a;
select sum(a) from t group by (), ();
select sum(a) from t group by a, () order by 1;
select a from t group by ();
----
count:int8|sum:int8
0|NULL
?column?:int4
1
count:int8
0
count:int8
count:int8
sum:int8
4
sum:int8
2
2
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 8]

# What equals a key may have sub-queries.
select (select d from u where u.id = t.a) x, count(*) from t group by (select d from u where u.id = t.a) order by 1;
select (select d from u where u.id = t.a) + 1 x, count(*) from t group by (select d from u where u.id = t.a) order by 1;
select count(*) from t group by (select d from u where u.id = t.a) having (select d from u where u.id = t.a) > 10;
select count(*) from t group by (select d from u where u.id = t.a) order by (select d from u where u.id = t.a) desc;
select exists (select 1 from u where u.id = t.a) x, count(*) from t group by exists (select 1 from u where u.id = t.a);
select a in (select id from u where u.id = t.a) x, count(*) from t group by a in (select id from u where u.id = t.a);
select array(select id from u where u.id = t.a) x, count(*) from t group by array(select id from u where u.id = t.a) order by 1;
select sum(count(*)) over (partition by (select d from u where u.id = t.a)) from t group by (select d from u where u.id = t.a) order by 1;
select distinct (select d from u where u.id = t.a) from t order by (select d from u where u.id = t.a);
select distinct on ((select d from u where u.id = t.a)) a from t order by (select d from u where u.id = t.a), a;
select (select sum(d) from u where u.id = t.a) x, count(*) from t group by (select sum(d) from u where u.id = t.a) order by 1;
select (select d from (select d, id from u) v where v.id = t.a) x, count(*) from t group by (select d from (select d, id from u) v where v.id = t.a) order by 1;
select (select d from u where u.id = (select t.a)) x, count(*) from t group by (select d from u where u.id = (select t.a)) order by 1;
select (select d from u where u.id = t.b) x, count(*) from t group by (select d from u where u.id = t.a);
select (select d from u where u.id = t.a limit 1) x, count(*) from t group by (select d from u where u.id = t.a);
select (select 1.0), (select 1.00), (select 1.0);
select (select random()) = (select random());
select a + 1.00 x from t group by a + 1.0;
----
x:int4|count:int8
10|2
20|1
x:int4|count:int8
11|2
21|1
count:int8
1
count:int8
1
2
x:bool|count:int8
t|3
x:bool|count:int8
t|3
x:_int4|count:int8
{1}|2
{2}|1
sum:numeric
1
2
d:int4
10
20
a:int4
1
2
x:int8|count:int8
10|2
20|1
x:int4|count:int8
10|2
20|1
x:int4|count:int8
10|2
20|1
ERROR 42803: subquery uses ungrouped column "t.b" from outer query [at 38]
ERROR 42803: subquery uses ungrouped column "t.a" from outer query [at 38]
?column?:numeric|?column?:numeric|?column?:numeric
1.0|1.00|1.0
?column?:bool
f
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 8]

# Constants and names of outputs.
select count(*) from t group by 'x';
select count(*) from t group by null;
select count(*) from t group by true;
select count(*) from t group by (false);
select count(*) from t group by 1.5;
select count(*) from t group by 'x'::text;
select b as x, a as x from t group by x;
select b as x, b as x from t group by x order by 1;
select a from t group by all a order by a;
select a from t group by distinct a, b order by a;
select count(*) from t group by all (a) order by 1;
select a from t group by all;
----
ERROR 42601: non-integer constant in GROUP BY [at 33]
ERROR 42601: non-integer constant in GROUP BY [at 33]
ERROR 42601: non-integer constant in GROUP BY [at 33]
ERROR 42601: non-integer constant in GROUP BY [at 34]
ERROR 42601: non-integer constant in GROUP BY [at 33]
count:int8
3
ERROR 42702: GROUP BY "x" is ambiguous [at 39]
x:int4|x:int4
1|1
2|2
a:int4
1
2
a:int4
1
1
2
count:int8
1
2
ERROR 42601: syntax error at or near ";" [at 29]

# Errors point to the mention that is not grouped.
select a::text, a from t group by a::text;
select a + 1, a + 2 from t group by a + 1;
select a + 1, b from t group by a + 1 order by a;
select a + 1, b from t group by a + 1, b order by a;
select a + 1 from t group by a + 1 having a > 0;
select a + 1 + a from t group by a + 1;
select sum(a) over (order by a), a from t group by b;
select a + 1, (select a + 1) from t group by a + 1;
select a + 1, (select a + 2 from u) from t group by a + 1;
select b, count(*) over (order by a) from t group by b;
----
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 17]
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 15]
ERROR 42803: column "t.b" must appear in the GROUP BY clause or be used in an aggregate function [at 15]
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 51]
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 43]
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 16]
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 12]
ERROR 42803: subquery uses ungrouped column "t.a" from outer query [at 23]
ERROR 42803: subquery uses ungrouped column "t.a" from outer query [at 23]
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 35]

drop table t, u;
----
DROP TABLE
