# Correlated sub-queries without an index to look rows up by: their rows are kept by key after a few runs.

create table a (id int primary key, k int, n numeric, t text);
create table b (id int primary key, k bigint, n int, t varchar(10), v int);
insert into a select g, g % 50, g % 7 + 0.0, case when g % 5 <> 0 then 'x' || g % 20 end from generate_series(1, 200) g;
insert into b select g, case when g % 3 <> 0 then g % 60 end, g % 9, 'x' || g % 30, g from generate_series(1, 300) g;
select sum(s), count(s), sum(c) from (select (select sum(v) from b where b.k = a.k) s, (select count(*) from b where b.k = a.k and v > 100) c from a) q;
select count(*) from a where exists (select 1 from b where b.k = a.k and b.v > a.id);
select count(*) from a where not exists (select 1 from b where b.k = a.k);
select count(*) from a where a.id in (select v from b where b.n = a.n);
select count(*) from a where a.t = any (select t from b where b.k = a.k);
select count(*), sum(m), sum(l) from (select (select max(v) from b where b.t = a.t) m, (select v from b where b.t = a.t order by v desc limit 1) l from a) q;
select sum((select b.v from b where b.k = a.k and b.n = a.n order by b.id limit 1)) from a;
select string_agg(coalesce(s, '-'), ',' order by id) from (select id, (select string_agg(b.v::text, '+') from b where b.k = a.k and b.v % 7 = a.n) s from a where id <= 30) q;
select count(*) from a where (select count(*) from b where b.k = a.k and exists (select 1 from b c where c.n = b.n and c.k = a.k)) > 3;
select id from a where id < 40 and k = (select min(k) from b where b.v = a.id) order by id;
update a set n = (select count(*) from b where b.k = a.k);
select sum(n) from a;
update b set v = v + 1000 where exists (select 1 from a where a.k = b.k and a.n > 3) and v < 50;
select sum(v) from b;
delete from b where v > 1000 and not exists (select 1 from a where a.k = b.k and a.id < 25);
select count(*) from b;
explain select (select sum(v) from b where b.k = a.k and b.n > 3) from a;
explain select (select sum(v) from b where b.id = a.k) from a;
explain select (select sum(v) from b where b.k > a.k) from a;
select id from a where (select 1 / (b.v - 300) from b where b.k = a.k and b.id = 300) = 1;
----
CREATE TABLE
CREATE TABLE
INSERT 0 200
INSERT 0 300
sum:numeric|count:int8|sum:numeric
95540|132|420
count:int8
132
count:int8
68
count:int8
27
count:int8
44
count:int8|sum:int8|sum:int8
200|44800|44800
sum:int8
3412
string_agg:text
1,2,-,4,5,-,7,8,-,10,11,-,13,14,-,16,17,-,19,20,-,22,23,-,25,26,-,28,29,-
count:int8
132
id:int4
1
2
4
5
7
8
10
11
13
14
16
17
19
20
22
23
25
26
28
29
31
32
34
35
37
38
UPDATE 200
sum:numeric
660
UPDATE 33
sum:int8
78150
DELETE 17
count:int8
283
Full Scan on a
  SubPlan 1 (rows kept by key)
    ->  Aggregate
          ->  Full Scan on b
                Filter: ((k = $0) AND (n > 3))
Full Scan on a
  SubPlan 1
    ->  Aggregate
          ->  Point Get on b
                Key: (id = $0)
Full Scan on a
  SubPlan 1
    ->  Aggregate
          ->  Full Scan on b
                Filter: (k > $0)
id:int4

# Equal values of the outer row that are not the same have results of their own.
create table shades (id int, n numeric, f float8, i interval, a numeric[]);
insert into shades values (1, 1.0, 0, '1 day', '{1.0}'), (2, 1.00, '-0', '24:00', '{1.00}');
select id, (select n::text || x from (values ('!')) v (x)), (select f::text || x from (values ('!')) v (x)),
    (select i::text || x from (values ('!')) v (x)), (select a::text || x from (values ('!')) v (x)) from shades order by id;
select id, (select (n, a)::text || x from (values ('!')) v (x)) from shades order by id;
----
CREATE TABLE
INSERT 0 2
id:int4|?column?:text|?column?:text|?column?:text|?column?:text
1|1.0!|0!|1 day!|{1.0}!
2|1.00!|-0!|24:00:00!|{1.00}!
id:int4|?column?:text
1|(1.0,{1.0})!
2|(1.00,{1.00})!

# ARRAY of a sub-query whose values are arrays has one more dimension.
select array(select array[g, g * 10] from generate_series(1, 3) g);
select array(select array[array[g, 1]] from generate_series(1, 2) g);
select array_dims(array(select '[5:6]={1,2}'::int[] from generate_series(1, 2)));
select (array(select array[g, g * 10] from generate_series(1, 3) g))[2][2];
select array(select array[g] from generate_series(1, 2) g where false);
select array(select array[g, null] from generate_series(1, 2) g);
select array(select '{}'::int[]);
select array(select x from (values (array[1]), (array[1, 2])) v (x));
select array(select x from (values (array[1]), (null)) v (x));
select array(select '1 2'::int2vector);
select array(select '{{{{{{1}}}}}}'::int[]);
select id, array(select array[n, g] from generate_series(1, 2) g) from shades order by id;
----
array:_int4
{{1,10},{2,20},{3,30}}
array:_int4
{{{1,1}},{{2,1}}}
array_dims:text
[1:2][5:6]
array:int4
20
array:_int4
{}
array:_int4
{{1,NULL},{2,NULL}}
ERROR 2202E: cannot accumulate empty arrays
ERROR 2202E: cannot accumulate arrays of different dimensionality
ERROR 22004: cannot accumulate null arrays
array:_int2vector
{"1 2"}
ERROR 54000: number of array dimensions (7) exceeds the maximum allowed (6)
id:int4|array:_numeric
1|{{1.0,1},{1.0,2}}
2|{{1.00,1},{1.00,2}}
