# An array of keys: each of its elements is looked up.

create table t (id int primary key, k int, v text, unique (v));
create index t_k on t (k desc);
create table p (a int, b bigint, c numeric, primary key (a, b));
create index p_cb on p (c, b) where c is not null;
insert into t select g, g % 10, 'v' || g from generate_series(1, 200) g;
insert into p select g % 20, g, g / 10.0 from generate_series(1, 200) g;
select id, v from t where id = any (array[7, 3, null, 7, 500]) order by id;
select id, v from t where id = any (array[[7, 3], [200, 1]]) order by id;
select id, v from t where id = any (null::int[]);
select id, v from t where id = any ('{}'::int[]);
select id, v from t where id = any (array(select g from generate_series(5, 8) g)) order by id desc;
select id from t where k = any (array(select g from generate_series(8, 30) g)) and id < 40 order by k, id;
select id from t where v = any (array(select 'v' || g from generate_series(8, 10) g)) order by 1;
select id from t where id = any (array[3, 4]::bigint[]) or id = 7 order by 1;
select id from t where id <> all (array(select g from generate_series(3, 300) g)) order by 1;
select * from p where a = 3 and b = any (array(select g from generate_series(1, 50) g)) order by b;
select * from p where b = any (array(select g::bigint from generate_series(1, 300, 40) g)) and a = any (array(select 1 + g from generate_series(0, 3) g)) order by b;
select a, b from p where c = any (array(select g / 2.0 from generate_series(1, 4) g)) order by c, b;
prepare by_ids (int[]) as select id, k from t where id = any ($1) order by id;
execute by_ids ('{3,1,2,1000,null}');
execute by_ids (null);
execute by_ids ('{}');
select a.id, b.id from t a join t b on b.id = any (array[a.id + 1, a.k]) where a.id < 4 order by 1, 2;
select id, (select array_agg(b.id order by b.id) from t b where b.id = any (array[a.id, a.id + 1])) from t a where id < 3 order by id;
update t set k = -1 where id = any (array(select g from generate_series(1, 3) g)) returning id;
delete from t where k = any (array[-1, -2]) returning id;
update t set v = v || '!' where id in (select id from t where k = 5 order by id limit 2 for update skip locked) returning id, v;
delete from t where id in (select id from t order by id desc limit 3) returning id;
delete from t where id in (select id from t order by id limit 0) returning id;
select count(*) from t where k not in (select k from t order by k limit 2);
select count(*) from t where v in (select v from t order by id limit 1);
explain select * from t where id = any (array(select g from generate_series(5, 8) g));
explain select * from t where k = any (array(select g from generate_series(8, 30) g)) order by k;
explain select * from t where id = any (array(select 1)) order by id;
explain select * from p where a = 3 and b = any (array(select 1));
explain select * from p where a = any (array(select 1)) and b = any (array(select 1));
explain select * from p where c = any (array(select 1.5)) and b > 3;
explain execute by_ids ('{3}');
explain update t set v = 'x' where id in (select id from t where k = 5 order by id limit 2 for update skip locked);
explain select * from t where id in (select k from t);
explain select * from t where id > any (array(select 1));
explain select a.id from p join t a on a.id = any (array[p.a, 1]) where p.a = 3;
analyze t;
explain select * from t where id = any (array(select g from generate_series(5, 8) g));
explain select * from t where k = any (array(select g from generate_series(8, 30) g)) and id < 5;
----
CREATE TABLE
CREATE INDEX
CREATE TABLE
CREATE INDEX
INSERT 0 200
INSERT 0 200
id:int4|v:text
3|v3
7|v7
id:int4|v:text
1|v1
3|v3
7|v7
200|v200
id:int4|v:text
id:int4|v:text
id:int4|v:text
8|v8
7|v7
6|v6
5|v5
id:int4
8
18
28
38
9
19
29
39
id:int4
8
9
10
id:int4
3
4
7
id:int4
1
2
a:int4|b:int8|c:numeric
3|3|0.30000000000000000000
3|23|2.3000000000000000
3|43|4.3000000000000000
a:int4|b:int8|c:numeric
1|1|0.10000000000000000000
1|41|4.1000000000000000
1|81|8.1000000000000000
1|121|12.1000000000000000
1|161|16.1000000000000000
a:int4|b:int8
5|5
10|10
15|15
0|20
PREPARE
id:int4|k:int4
1|1
2|2
3|3
id:int4|k:int4
id:int4|k:int4
id:int4|id:int4
1|1
1|2
2|2
2|3
3|3
3|4
id:int4|array_agg:_int4
1|{1,2}
2|{2,3}
id:int4
1
2
3
UPDATE 3
id:int4
1
2
3
DELETE 3
id:int4|v:text
5|v5!
15|v15!
UPDATE 2
id:int4
198
199
200
DELETE 3
id:int4
DELETE 0
count:int8
175
count:int8
1
Point Get on t
  Key: (id = ANY ((SubPlan 1)))
  SubPlan 1
    ->  Function Scan on generate_series
Index Scan Backward using t_k on t
  Index Cond: (k = ANY ((SubPlan 1)))
  SubPlan 1
    ->  Function Scan on generate_series
Point Get on t
  Key: (id = ANY ((SubPlan 1)))
  SubPlan 1
    ->  Result
Point Get on p
  Key: ((a, b) = (3, ANY ((SubPlan 1))))
  SubPlan 1
    ->  Result
Full Scan on p
  Filter: ((a = ANY ((SubPlan 1))) AND (b = ANY ((SubPlan 1))))
  SubPlan 1
    ->  Result
Index Only Scan using p_cb on p
  Index Cond: ((c = ANY ((SubPlan 1))) AND (b > 3))
  SubPlan 1
    ->  Result
Point Get on t
  Key: (id = ANY ($1))
Update on t
  ->  Point Get on t
        Key: (id = ANY ((SubPlan 1)))
  SubPlan 1
    ->  Limit
          ->  LockRows
                ->  Index Scan using t_k on t
                      Index Cond: (k = 5)
Full Scan on t
  Filter: (id = ANY (SubPlan 1))
  SubPlan 1
    ->  Full Scan on t
Full Scan on t
  Filter: (id > ANY ((SubPlan 1)))
  SubPlan 1
    ->  Result
Nested Loop
  Join Filter: (a.id = ANY (ARRAY[p.a, 1]))
  ->  Range Scan on p
        Key: (a = 3)
  ->  Full Scan on t a
ANALYZE
Point Get on t
  Key: (id = ANY ((SubPlan 1)))
  SubPlan 1
    ->  Function Scan on generate_series
Range Scan on t  (rows=2)
  Key: (id < 5)
  Filter: (k = ANY ((SubPlan 1)))
  SubPlan 1
    ->  Function Scan on generate_series
