create table c (id int primary key, name text not null, city text);
create table o (id int primary key, cid int, day date not null, total numeric, note text);
create table l (oid int not null, line int not null, item text, primary key (oid, line));
insert into c values (1, 'ann', 'rome'), (2, 'bob', 'oslo'), (3, 'cid', 'rome'), (4, 'dan', null);
insert into o select g, case when g % 7 = 0 then null else g % 5 end, date '2024-01-01' + g, g * 1.5, 'n' || g from generate_series(1, 40) g;
insert into l select g / 3, g % 3, 'item' || g % 4 from generate_series(3, 90) g;
create index o_cid_day on o (cid, day desc) include (total);
create unique index c_name on c (name);
create index c_city on c (city);
create index l_item on l (item);
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
INSERT 0 4
INSERT 0 40
INSERT 0 88
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE INDEX

# A look-up by the prefix of an index: the left side has few rows.
explain select c.name, o.id from c join o on o.cid = c.id where c.name = 'bob';
select c.name, o.id from c join o on o.cid = c.id where c.name = 'bob' order by o.id;
explain select c.name, o.day, o.total from c left join o on o.cid = c.id and o.day > date '2024-01-20' where c.city = 'rome';
select c.name, o.day, o.total from c left join o on o.cid = c.id and o.day > date '2024-01-20' where c.city = 'rome' order by 1, 2;
select c.name, o.day, o.total from c left join o on o.cid = c.id and o.day > date '2025-01-20' where c.city = 'rome' order by 1, 2;
----
Nested Loop
  ->  Index Only Scan using c_name on c
        Index Cond: (name = 'bob'::text)
  ->  Index Only Scan using o_cid_day on o
        Index Cond: (cid = $0)
name:text|id:int4
bob|2
bob|12
bob|17
bob|22
bob|27
bob|32
bob|37
Nested Loop Left Join
  ->  Index Scan using c_city on c
        Index Cond: (city = 'rome'::text)
  ->  Index Only Scan using o_cid_day on o
        Index Cond: ((cid = $0) AND (day > '2024-01-20'::date))
name:text|day:date|total:numeric
ann|2024-01-27|39.0
ann|2024-02-01|46.5
ann|2024-02-06|54.0
cid|2024-01-24|34.5
cid|2024-02-03|49.5
cid|2024-02-08|57.0
name:text|day:date|total:numeric
ann|NULL|NULL
cid|NULL|NULL

# The sides of an inner join exchanged; three tables; no look-up of a right or full join.
explain select o.id, c.name from o join c on c.id = o.cid where c.city = 'oslo';
select o.id, c.name from o join c on c.id = o.cid where c.city = 'oslo' order by 1;
explain select l.item, o.id, c.name from l join o on o.id = l.oid join c on c.id = o.cid where c.name = 'cid';
select l.item, o.id, c.name from l join o on o.id = l.oid join c on c.id = o.cid where c.name = 'cid' order by 2, 1;
explain select o.id, c.name from o left join c on c.id = o.cid where c.city = 'oslo';
explain select o.id, c.name from o right join c on c.id = o.cid where c.city = 'oslo';
select count(*), count(o.id) from o right join c on c.id = o.cid where c.city = 'oslo';
explain select count(*) from c full join o on o.cid = c.id;
select count(*) from c full join o on o.cid = c.id;
----
Nested Loop
  ->  Index Scan using c_city on c
        Index Cond: (city = 'oslo'::text)
  ->  Index Only Scan using o_cid_day on o
        Index Cond: (cid = $0)
id:int4|name:text
2|bob
12|bob
17|bob
22|bob
27|bob
32|bob
37|bob
Hash Join
  Hash Cond: (o.cid = c.id)
  ->  Hash Join
        Hash Cond: (l.oid = o.id)
        ->  Full Scan on l
        ->  Full Scan on o
  ->  Index Only Scan using c_name on c
        Index Cond: (name = 'cid'::text)
item:text|id:int4|name:text
item1|3|cid
item2|3|cid
item3|3|cid
item0|8|cid
item1|8|cid
item2|8|cid
item0|13|cid
item1|13|cid
item3|13|cid
item0|18|cid
item2|18|cid
item3|18|cid
item1|23|cid
item2|23|cid
item3|23|cid
Hash Left Join
  Hash Cond: (o.cid = c.id)
  Filter: (c.city = 'oslo'::text)
  ->  Full Scan on o
  ->  Full Scan on c
Hash Right Join
  Hash Cond: (o.cid = c.id)
  ->  Full Scan on o
  ->  Index Scan using c_city on c
        Index Cond: (city = 'oslo'::text)
count:int8|count:int8
7|7
Aggregate
  ->  Hash Full Join
        Hash Cond: (c.id = o.cid)
        ->  Full Scan on c
        ->  Full Scan on o
count:int8
40

# A derived table, a join with itself, keys that are NULL, a further condition, an outer value.
explain select c.id, s.total from c join (select cid, total from o where total > 10) s on s.cid = c.id where c.id = 3;
select c.id, s.total from c join (select cid, total from o where total > 10) s on s.cid = c.id where c.id = 3 order by 2;
explain select a.id, b.id from o a join o b on a.cid = b.cid and a.id < b.id where a.id = 32;
select a.id, b.id from o a join o b on a.cid = b.cid and a.id < b.id where a.id in (7, 32) order by 1, 2;
select c.name, (select count(*) from o join l on l.oid = o.id where o.cid = c.id and o.total < c.id * 10) from c order by 1;
explain select c.name, (select count(*) from o join l on l.oid = o.id where o.cid = c.id and o.total < c.id * 10) from c;
----
Nested Loop
  ->  Point Get on c
        Key: (id = 3)
  ->  Index Only Scan using o_cid_day on o
        Index Cond: (cid = $0)
        Filter: (total > 10)
id:int4|total:numeric
3|12.0
3|19.5
3|27.0
3|34.5
3|49.5
3|57.0
Nested Loop
  Join Filter: (a.id < b.id)
  ->  Point Get on o a
        Key: (id = 32)
  ->  Index Only Scan using o_cid_day on o b
        Index Cond: (cid = $0)
id:int4|id:int4
32|37
name:text|count:int8
ann|6
bob|6
cid|12
dan|12
Full Scan on c
  SubPlan 1
    ->  Aggregate
          ->  Nested Loop
                ->  Index Only Scan using o_cid_day on o
                      Index Cond: (cid = $0)
                      Filter: (total < ($0 * 10)::numeric)
                ->  Range Scan on l
                      Key: (oid = $0)

# Own conditions of the right side are better than the key of the join, or as good.
explain select 1 from c join o on o.cid = c.id where c.id = 2 and o.id = 17;
explain select 1 from c join l on l.item = c.name where c.id = 2 and l.oid = 7;
----
Hash Join
  Hash Cond: (c.id = o.cid)
  ->  Point Get on c
        Key: (id = 2)
  ->  Point Get on o
        Key: (id = 17)
Hash Join
  Hash Cond: (c.name = l.item)
  ->  Point Get on c
        Key: (id = 2)
  ->  Range Scan on l
        Key: (oid = 7)

# Scans in sub-queries, WITH, set operations.
explain select * from c where exists (select 1 from o where o.cid = c.id and o.day = date '2024-01-12');
select * from c where exists (select 1 from o where o.cid = c.id and o.day = date '2024-01-12');
explain with x as (select id from o where cid = 3) select count(*) from x;
with x as (select id from o where cid = 3) select count(*) from x;
explain select id from o where cid = 1 union all select id from c where name = 'ann';
select id from o where cid = 1 union all select id from c where name = 'ann' order by 1;
explain select (select total from o where cid = 2 order by day desc limit 1);
select (select total from o where cid = 2 order by day desc limit 1);
explain select cid, day, total from (select * from o where cid = 4) s where day < date '2024-01-15';
select cid, day, total from (select * from o where cid = 4) s where day < date '2024-01-15' order by 2;
explain select day, sum(total) from o where cid = 1 group by day order by day limit 2;
select day, sum(total) from o where cid = 1 group by day order by day limit 2;
----
Full Scan on c
  Filter: EXISTS(SubPlan 1)
  SubPlan 1
    ->  Index Only Scan using o_cid_day on o
          Index Cond: ((cid = $0) AND (day = '2024-01-12'::date))
id:int4|name:text|city:text
1|ann|rome
Aggregate
  CTE x
    ->  Index Only Scan using o_cid_day on o
          Index Cond: (cid = 3)
  ->  CTE Scan on x
count:int8
7
Append
  ->  Index Only Scan using o_cid_day on o
        Index Cond: (cid = 1)
  ->  Index Only Scan using c_name on c
        Index Cond: (name = 'ann'::text)
id:int4
1
1
6
11
16
26
31
36
Result
  SubPlan 1
    ->  Limit
          ->  Index Only Scan using o_cid_day on o
                Index Cond: (cid = 2)
total:numeric
55.5
Index Only Scan using o_cid_day on o
  Index Cond: ((cid = 4) AND (day < '2024-01-15'::date))
cid:int4|day:date|total:numeric
4|2024-01-05|6.0
4|2024-01-10|13.5
Limit
  ->  Sort
        Sort Key: day
        ->  HashAggregate
              Group Key: day
              ->  Index Only Scan using o_cid_day on o
                    Index Cond: (cid = 1)
day:date|sum:numeric
2024-01-02|1.5
2024-01-07|9.0

# An order that an index gives, below joins and queries.
explain select c.name, o.day from c join o on o.cid = c.id order by c.name limit 3;
select c.name, o.day from c join o on o.cid = c.id where o.day > date '2024-02-05' order by c.name limit 3;
explain select name, n from (select name, length(name) as n from c) s order by name desc limit 2;
select name, n from (select name, length(name) as n from c) s order by name desc limit 2;
explain select c.name, g from c, lateral generate_series(1, c.id) g order by c.name desc limit 2;
select c.name, g from c, lateral generate_series(1, c.id) g order by c.name desc limit 2;
explain select c.name, o.day from c left join o on o.cid = c.id where c.id = 2 order by o.day limit 3;
explain select c.name from o right join c on o.cid = c.id order by o.id limit 3;
explain select id from o where cid = 2 order by day desc, id;
select id from o where cid = 2 order by day desc, id;
explain select id from o where cid = 2 order by day, id desc limit 2;
select id from o where cid = 2 order by day, id desc limit 2;
explain select distinct cid from o order by cid;
select distinct cid from o order by cid;
select distinct cid from o order by cid desc;
----
Limit
  ->  Hash Join
        Hash Cond: (c.id = o.cid)
        ->  Index Only Scan using c_name on c
        ->  Full Scan on o
name:text|day:date
ann|2024-02-06
bob|2024-02-07
cid|2024-02-08
Limit
  ->  Index Only Scan Backward using c_name on c
name:text|n:int4
dan|3
cid|3
Limit
  ->  Nested Loop
        ->  Index Only Scan Backward using c_name on c
        ->  Function Scan on generate_series
name:text|g:int4
dan|1
dan|2
Limit
  ->  Sort
        Sort Key: o.day
        ->  Nested Loop Left Join
              ->  Point Get on c
                    Key: (id = 2)
              ->  Index Only Scan using o_cid_day on o
                    Index Cond: (cid = $0)
Limit
  ->  Sort
        Sort Key: o.id
        ->  Hash Right Join
              Hash Cond: (o.cid = c.id)
              ->  Full Scan on o
              ->  Full Scan on c
Index Only Scan using o_cid_day on o
  Index Cond: (cid = 2)
id:int4
37
32
27
22
17
12
2
Limit
  ->  Index Only Scan Backward using o_cid_day on o
        Index Cond: (cid = 2)
id:int4
2
12
Unique
  ->  Index Only Scan using o_cid_day on o
cid:int4
0
1
2
3
4
NULL
cid:int4
NULL
4
3
2
1
0

# min and max.
explain select min(name) from c;
explain select max(cid) from o;
explain select min(city), max(city) from c;
explain select max(day) from o where cid = 3;
explain select max(day) from o where cid > 3;
explain select max(total) from o;
explain select max(id) + 1 from o;
explain select min(id) from o where id > 10 having max(id) > 5;
explain select max(cid) from o where note = 'x';
explain select max(distinct cid) filter (where id > 3) from o;
explain select min(line) from l where oid = 4;
select min(name), max(name) from c;
select min(name) from c;
select max(cid) from o;
select min(cid) from o;
select max(city) from c;
select min(city) from c;
select max(day) from o where cid = 3;
select min(day) from o where cid = 3;
select max(day) from o where cid = 99;
select max(id) + 1 from o;
select min(id) from o where id > 10;
select min(line) from l where oid = 4;
select count(*) from o where cid = (select max(cid) from o);
create table e (a int);
create index on e (a desc nulls last);
select max(a), count(*) from e;
select max(a) from e;
insert into e values (null), (null);
select max(a) from e;
select min(a) from e;
insert into e values (3), (1), (2);
select max(a) from e;
select min(a) from e;
explain select max(a) from e;
explain select a from e where a > 1 order by a;
select a from e where a > 1 order by a;
select a from e where a > 1 order by a desc nulls first;
explain select a from e order by a desc limit 1;
select a from e order by a desc limit 1;
select a from e order by a desc nulls last limit 1;
select a from e order by a nulls first limit 3;
----
Aggregate
  ->  Limit
        ->  Index Only Scan using c_name on c
Aggregate
  ->  Limit
        ->  Index Only Scan Backward using o_cid_day on o
              Index Cond: (cid IS NOT NULL)
Aggregate
  ->  Full Scan on c
Aggregate
  ->  Limit
        ->  Index Only Scan using o_cid_day on o
              Index Cond: (cid = 3)
Aggregate
  ->  Index Only Scan using o_cid_day on o
        Index Cond: (cid > 3)
Aggregate
  ->  Full Scan on o
Aggregate
  ->  Limit
        ->  Full Scan Backward on o
Aggregate
  Filter: (max(id) > 5)
  ->  Range Scan on o
        Key: (id > 10)
Aggregate
  ->  Full Scan on o
        Filter: (note = 'x'::text)
Aggregate
  ->  Full Scan on o
Aggregate
  ->  Limit
        ->  Range Scan on l
              Key: (oid = 4)
min:text|max:text
ann|dan
min:text
ann
max:int4
4
min:int4
0
max:text
rome
min:text
oslo
max:date
2024-02-08
min:date
2024-01-04
max:date
NULL
?column?:int4
41
min:int4
11
min:int4
0
count:int8
7
CREATE TABLE
CREATE INDEX
max:int4|count:int8
NULL|0
max:int4
NULL
INSERT 0 2
max:int4
NULL
min:int4
NULL
INSERT 0 3
max:int4
3
min:int4
1
Aggregate
  ->  Limit
        ->  Index Only Scan using e_a_idx on e
              Index Cond: (a IS NOT NULL)
Index Only Scan Backward using e_a_idx on e
  Index Cond: (a > 1)
a:int4
2
3
a:int4
3
2
Limit
  ->  Sort
        Sort Key: a DESC
        ->  Full Scan on e
a:int4
NULL
a:int4
3
a:int4
NULL
NULL
1

# IS NOT NULL is a bound of an index.
explain select id from o where cid is not null and day > date '2024-02-01';
select count(*) from o where cid is not null and day > date '2024-02-01';
explain select city from c where city is not null order by city;
select city from c where city is not null order by city;
select city from c where city is not null order by city desc;
select count(*) from o where cid is not null;
select a from e where a is not null order by a;
----
Full Scan on o
  Filter: ((cid IS NOT NULL) AND (day > '2024-02-01'::date))
count:int8
8
Index Only Scan using c_city on c
  Index Cond: (city IS NOT NULL)
city:text
oslo
rome
rome
city:text
rome
rome
oslo
count:int8
35
a:int4
1
2
3

# Changes of rows beside scans of the same index.
update o set cid = 4 where cid in (select id from c where city = 'oslo') returning id;
select c.name, count(*) from c join o on o.cid = c.id group by c.name order by 1;
insert into o select id + 100, cid, day, total, note from o where cid = (select max(cid) from o);
select max(id), count(*) from o where cid = 4;
delete from o where cid = (select min(cid) from o);
select min(cid) from o;
update o set note = 'last' where id = (select max(id) from o) returning id;
update o set note = 'none' where cid = (select max(cid) from o) and day = (select min(day) from o where cid = 4) returning id;
select id from o where cid = (select min(cid) from o) and day > date '2024-01-28' order by id for update;
insert into c values (2, 'bob', 'bern') on conflict (id) do update set city = (select max(city) from c) || excluded.city returning city;
----
id:int4
2
12
17
22
27
32
37
UPDATE 7
name:text|count:int8
ann|7
cid|7
dan|14
INSERT 0 14
max:int4|count:int8
139|28
DELETE 7
min:int4
1
id:int4
139
UPDATE 1
id:int4
2
102
UPDATE 2
id:int4
31
36
city:text
romebern
INSERT 0 1

# Outer values on either side of a look-up, in its keys, its output, its sub-queries.
select c.id, (select string_agg(o.id::text, ',' order by o.id) from o join c d on d.id = o.cid where d.name = c.name and o.id < c.id * 10) from c order by 1;
explain select c.id, (select count(*) from o join c d on d.id = o.cid where d.name = c.name and o.id < c.id * 10) from c;
select c.id, s.n, s.m from c, lateral (select count(*) n, max(o.day) m from o where o.cid = c.id) s order by 1;
explain select c.id, s.m from c, lateral (select max(o.day) m from o where o.cid = c.id) s where c.id = 3;
select c.id, x.* from c left join lateral (select o.id as oid, l.item, c.name || l.item as both from o join l on l.oid = o.id where o.cid = c.id and l.line > 0 order by o.id, l.item limit 2) x on true order by 1, 2, 3;
select c.id, (select count(*) from o join l on l.oid = o.id and exists (select 1 from c d where d.id = o.cid and d.name >= c.name) where o.id in (3, 8, c.id)) from c order by 1;
select a.id, b.id from o a left join o b on b.cid = a.cid and b.id > a.id and a.total > 10 where a.id in (3, 8, 35, 38) order by 1, 2;
select a.id, b.x from (values (1, 2), (3, null), (5, 4)) a (id, cid) left join (select cid, id * 2 as x from o where id % 2 = 0) b on b.cid = a.cid order by 1, 2;
select g, o.id from generate_series(1, 6) g join o on o.cid = g and o.id = g order by 1;
select o.id, v.k from o join (values (1), (2), (null)) v (k) on v.k = o.cid order by 1, 2;
select count(*) from o a join o b on a.cid = b.cid join o c on c.cid = b.cid and c.day = b.day where a.id = 33;
select o.id, c.name from o natural join (select id as cid, name from c where city is null) c order by 1;
select distinct on (o.cid) o.cid, o.day, c.name from o join c on c.id = o.cid where c.city = 'rome' order by o.cid, o.day desc;
select c.name, o.day from c join o on o.cid = c.id order by c.name desc, o.day limit 4;
select c.name, max(o.total) from c left join o on o.cid = c.id group by c.name order by c.name;
select s.name, o.id from (select name, id from c order by name limit 2) s join o on o.cid = s.id order by 1, 2 limit 5;
select x.cid, y.id from (select max(cid) as cid from o where cid < 3) x join o y on y.cid = x.cid order by 2;
with recursive r as (select id, cid from o where id = 3 union select o.id, o.cid from r join o on o.cid = r.cid and o.id < r.id + 6) select count(*), max(id) from r;
select o.id from o where (o.cid, o.day) in (select c.id, date '2024-01-09' from c) order by 1;
select id, cid from o where cid is null order by id desc limit 2;
select o.id from o join c on c.id = o.cid where c.name = 'ann' order by o.id offset 2 limit 2;
select c.name from c join o on o.cid = c.id and o.day = (select max(day) from o p where p.cid = c.id) order by 1;
----
id:int4|string_agg:text
1|1,6
2|NULL
3|3,8,13,18,23
4|2,4,9,12,17,19,22,24,27,29,32,34,37,39
Full Scan on c
  SubPlan 1
    ->  Aggregate
          ->  Nested Loop
                ->  Index Only Scan using c_name on c d
                      Index Cond: (name = $0)
                ->  Index Only Scan using o_cid_day on o
                      Index Cond: (cid = $1)
                      Filter: (id < ($0 * 10))
id:int4|n:int8|m:date
1|7|2024-02-06
2|0|NULL
3|7|2024-02-08
4|28|2024-02-09
Nested Loop
  ->  Point Get on c
        Key: (id = 3)
  ->  Aggregate
        ->  Limit
              ->  Index Only Scan using o_cid_day on o
                    Index Cond: (cid = $0)
id:int4|oid:int4|item:text|both:text
1|1|item0|annitem0
1|1|item1|annitem1
2|NULL|NULL|NULL
3|3|item2|ciditem2
3|3|item3|ciditem3
4|2|item0|danitem0
4|2|item3|danitem3
id:int4|count:int8
1|9
2|9
3|6
4|3
id:int4|id:int4
3|NULL
8|13
8|18
8|23
8|33
8|38
35|NULL
38|NULL
id:int4|x:int4
1|NULL
3|NULL
5|4
5|8
5|24
5|44
5|48
5|64
5|68
5|204
5|208
5|224
5|244
5|248
5|264
5|268
g:int4|id:int4
1|1
3|3
4|4
id:int4|k:int4
1|1
6|1
11|1
16|1
26|1
31|1
36|1
count:int8
7
id:int4|name:text
2|dan
4|dan
9|dan
12|dan
17|dan
19|dan
22|dan
24|dan
27|dan
29|dan
32|dan
34|dan
37|dan
39|dan
102|dan
104|dan
109|dan
112|dan
117|dan
119|dan
122|dan
124|dan
127|dan
129|dan
132|dan
134|dan
137|dan
139|dan
cid:int4|day:date|name:text
1|2024-02-06|ann
3|2024-02-08|cid
name:text|day:date
dan|2024-01-03
dan|2024-01-03
dan|2024-01-05
dan|2024-01-05
name:text|max:numeric
ann|54.0
bob|NULL
cid|57.0
dan|58.5
name:text|id:int4
ann|1
ann|6
ann|11
ann|16
ann|26
cid:int4|id:int4
1|1
1|6
1|11
1|16
1|26
1|31
1|36
count:int8|max:int4
5|23
id:int4
8
id:int4|cid:int4
35|NULL
28|NULL
id:int4
11
16
name:text
ann
cid
dan
dan
