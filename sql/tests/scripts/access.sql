# The access path of a filter, and the rows that it finds.
create table t (a int, b text, c int8, primary key (a, b));
create table p (id int8 primary key, v text);
create table h (a int, b int);
insert into t values (1, 'x', 10), (1, 'y', 20), (2, 'x', 30), (3, 'z', 40);
insert into p values (-5, 'neg'), (0, 'zero'), (1, 'one'), (300, 'three hundred'), (70000, 'many');
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
INSERT 0 4
INSERT 0 5

explain select * from t where a = 1 and b = 'x';
select * from t where a = 1 and b = 'x';
----
Point Get on t
  Key: ((a, b) = (1, 'x'::text))
a:int4|b:text|c:int8
1|x|10

explain select * from t where a = 1 and b = 'x' and c > 5;
----
Point Get on t
  Key: ((a, b) = (1, 'x'::text))
  Filter: (c > 5)

explain select * from t where a = 1;
select * from t where a = 1;
----
Range Scan on t
  Key: (a = 1)
a:int4|b:text|c:int8
1|x|10
1|y|20

explain select * from t where a = 1 order by b desc;
select * from t where a = 1 order by b desc;
----
Range Scan Backward on t
  Key: (a = 1)
a:int4|b:text|c:int8
1|y|20
1|x|10

explain select * from t where a > 1 and a <= 3;
select * from t where a > 1 and a <= 3;
----
Range Scan on t
  Key: ((a > 1) AND (a <= 3))
a:int4|b:text|c:int8
2|x|30
3|z|40

explain select * from t where a = 1 and b > 'x';
select * from t where a = 1 and b > 'x';
----
Range Scan on t
  Key: ((a = 1) AND (b > 'x'::text))
a:int4|b:text|c:int8
1|y|20

explain select * from t where a = 1 and b >= 'x' and b < 'y';
select * from t where a = 1 and b >= 'x' and b < 'y';
----
Range Scan on t
  Key: ((a = 1) AND (b >= 'x'::text) AND (b < 'y'::text))
a:int4|b:text|c:int8
1|x|10

explain select * from t where b = 'x';
select * from t where b = 'x';
----
Full Scan on t
  Filter: (b = 'x'::text)
a:int4|b:text|c:int8
1|x|10
2|x|30

explain select * from t order by a, b limit 1;
select * from t order by a, b limit 1;
----
Limit
  ->  Full Scan on t
a:int4|b:text|c:int8
1|x|10

explain select * from t order by a desc, b desc limit 1;
select * from t order by a desc, b desc limit 1;
----
Limit
  ->  Full Scan Backward on t
a:int4|b:text|c:int8
3|z|40

explain select * from t order by a desc, b;
select * from t order by a desc, b;
----
Sort
  Sort Key: a DESC, b
  ->  Full Scan on t
a:int4|b:text|c:int8
3|z|40
2|x|30
1|x|10
1|y|20

explain select * from t where (a, b) in ((1, 'x'), (3, 'z'), (1, 'x'), (9, 'q'));
select * from t where (a, b) in ((1, 'x'), (3, 'z'), (1, 'x'), (9, 'q'));
----
Point Get on t
  Key: ((a, b) IN ((1, 'x'::text), (3, 'z'::text), (1, 'x'::text), (9, 'q'::text)))
a:int4|b:text|c:int8
1|x|10
3|z|40

explain select * from t where a in (1, 2) and b = 'x';
select * from t where a in (1, 2) and b = 'x';
----
Point Get on t
  Key: ((a, b) IN ((1, 'x'::text), (2, 'x'::text)))
a:int4|b:text|c:int8
1|x|10
2|x|30

explain select * from p where id = 1 or id = 300;
select * from p where id = 1 or id = 300;
----
Point Get on p
  Key: (id IN (1, 300))
id:int8|v:text
1|one
300|three hundred

explain select * from p where id in (300, null, -5);
select * from p where id in (300, null, -5);
----
Point Get on p
  Key: (id IN (300, NULL, (-5)))
id:int8|v:text
-5|neg
300|three hundred

explain select * from p where id between -5 and 1 order by id desc;
select * from p where id between -5 and 1 order by id desc;
----
Range Scan Backward on p
  Key: ((id >= (-5)) AND (id <= 1))
id:int8|v:text
1|one
0|zero
-5|neg

explain select v from p where id > 1 and id < 1;
select v from p where id > 1 and id < 1;
----
Range Scan on p
  Key: ((id > 1) AND (id < 1))
v:text

explain select * from p where id = 1 and id = 300;
select * from p where id = 1 and id = 300;
----
Point Get on p
  Key: (id = 1)
  Filter: (id = 300)
id:int8|v:text

explain select id from p where id + 1 = 2;
select id from p where id + 1 = 2;
----
Full Scan on p
  Filter: ((id + 1) = 2)
id:int8
1

explain select id from p where not id = 1 and v like '%e';
select id from p where not id = 1 and v like '%e';
----
Full Scan on p
  Filter: ((NOT (id = 1)) AND (v ~~ '%e'::text))
id:int8

explain select count(*) from p where id > 0;
select count(*) from p where id > 0;
----
Aggregate
  ->  Range Scan on p
        Key: (id > 0)
count:int8
3

explain select distinct v from p order by v limit 3;
----
Limit
  ->  Sort
        Sort Key: v
        ->  Unique
              ->  Full Scan on p

explain select * from h where a = 1;
----
Full Scan on h
  Filter: (a = 1)

explain update p set v = 'x' where id = 1;
explain delete from p where id > 5;
explain insert into p values (1, 'x'), (2, 'y');
explain insert into p select a, b from t where a = 1;
explain values (1), (2);
explain select 1;
explain create table x (a int);
explain analyze select 1;
----
Update on p
  ->  Point Get on p
        Key: (id = 1)
Delete on p
  ->  Range Scan on p
        Key: (id > 5)
Insert on p
  ->  Values Scan on "*VALUES*"
Insert on p
  ->  Range Scan on t
        Key: (a = 1)
Values Scan on "*VALUES*"
Result
ERROR 42601: syntax error at or near "create" [at 9]
Result (actual time=... rows=1 loops=1)
Planning Time: ... ms
Execution Time: ... ms

\params 1 x
explain select * from t where a = $1 and b = $2;
----
params int4 text
Point Get on t
  Key: ((a, b) = ($1, $2))

\params 1
select * from p where id >= $1 order by id limit 2;
----
params int8
id:int8|v:text
1|one
300|three hundred

\params \N
select * from p where id = $1;
----
params int8
id:int8|v:text

\params \N
select * from p where id > $1;
----
params int8
id:int8|v:text

\params 300 -5
select * from p where id in ($1, $2);
----
params int8 int8
id:int8|v:text
-5|neg
300|three hundred

\params 300 -5
select * from p where id between $2 and $1;
----
params int8 int8
id:int8|v:text
-5|neg
0|zero
1|one
300|three hundred
