create table t (id int primary key, a int, b int, c text, n int not null);
insert into t values (1, 1, 10, 'x', 5), (2, 1, 20, 'y', 4), (3, 2, 10, 'X', 3), (4, null, 30, null, 2), (5, 3, null, 'z', 1);
create index t_a_b on t (a, b desc);
create index t_lower on t (lower(c));
create index t_part on t (b) where n > 2;
create unique index t_n on t (n desc) include (c);
----
CREATE TABLE
INSERT 0 5
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE INDEX

# Equality, ranges, lists.
explain select * from t where a = 1;
select * from t where a = 1;
explain select * from t where a = 1 and b > 10;
select * from t where a = 1 and b > 10;
select * from t where a = 1 and b >= 10 and b < 20;
explain select * from t where a > 1 and a <= 3;
select id from t where a > 1 and a <= 3;
select id from t where a < 2;
explain select * from t where a in (3, 1) and b = 10;
select id from t where a in (3, 1, 1) order by id;
select id from t where a = null;
select id from t where a in (null);
explain select * from t where a is null;
select id from t where a is null;
explain select * from t where a is null and b > 5;
select id from t where a is null and b > 5;
select id from t where a = 1 and b is null;
select id from t where a = 3 and b is null;
explain select * from t where id = 3 and a = 2;
----
Index Scan using t_a_b on t
  Index Cond: (a = 1)
id:int4|a:int4|b:int4|c:text|n:int4
2|1|20|y|4
1|1|10|x|5
Index Scan using t_a_b on t
  Index Cond: ((a = 1) AND (b > 10))
id:int4|a:int4|b:int4|c:text|n:int4
2|1|20|y|4
id:int4|a:int4|b:int4|c:text|n:int4
1|1|10|x|5
Index Scan using t_a_b on t
  Index Cond: ((a > 1) AND (a <= 3))
id:int4
3
5
id:int4
2
1
Index Scan using t_a_b on t
  Index Cond: ((a, b) IN ((3, 10), (1, 10)))
id:int4
1
2
5
id:int4
id:int4
Index Scan using t_a_b on t
  Index Cond: (a IS NULL)
id:int4
4
Index Scan using t_a_b on t
  Index Cond: ((a IS NULL) AND (b > 5))
id:int4
4
id:int4
id:int4
5
Point Get on t
  Key: (id = 3)
  Filter: (a = 2)

# Expressions, predicates, residual filters.
explain select id from t where lower(c) = 'x';
select id from t where lower(c) = 'x' order by id;
explain select id from t where lower(c) > 'x' and c <> 'z';
select id from t where lower(c) > 'x' and c <> 'z';
explain select id from t where b = 10 and n > 2;
select id from t where b = 10 and n > 2 order by id;
explain select id from t where b = 10 and n > 3;
select id from t where b = 10 and n > 3;
explain select id from t where n > 2 and b > 0;
explain select id, c from t where c like 'x%' and a = 1;
select id, c from t where c like 'x%' and a = 1;
----
Index Scan using t_lower on t
  Index Cond: (lower(c) = 'x'::text)
id:int4
1
3
Index Scan using t_lower on t
  Index Cond: (lower(c) > 'x'::text)
  Filter: (c <> 'z'::text)
id:int4
2
Index Scan using t_part on t
  Index Cond: (b = 10)
id:int4
1
3
Index Scan using t_n on t
  Index Cond: (n > 3)
  Filter: (b = 10)
id:int4
1
Index Scan using t_part on t
  Index Cond: (b > 0)
Index Scan using t_a_b on t
  Index Cond: (a = 1)
  Filter: (c ~~ 'x%'::text)
id:int4|c:text
1|x

# Order: forward, backward, NULLs, LIMIT.
explain select a, b from t order by a, b desc;
select a, b, id from t order by a, b desc;
explain select id from t order by a desc nulls first limit 2;
select id from t order by a desc nulls first limit 2;
explain select id from t order by a desc nulls first, b limit 3;
select a, b from t order by a desc nulls first, b limit 3;
explain select id from t order by a nulls first limit 2;
explain select * from t order by a;
explain select * from t order by n desc limit 2;
select id, n from t order by n desc limit 2;
explain select * from t order by n limit 2;
select id, n from t order by n limit 2;
explain select * from t where a = 1 order by b desc, id;
select id from t where a = 1 order by b desc, id;
explain select * from t where a in (1, 2) order by b;
select id from t where a in (1, 2) order by b, id;
select id from t where a in (2, 1) order by a desc, b desc;
----
Index Only Scan using t_a_b on t
a:int4|b:int4|id:int4
1|20|2
1|10|1
2|10|3
3|NULL|5
NULL|30|4
Limit
  ->  Index Only Scan Backward using t_a_b on t
id:int4
4
5
Limit
  ->  Index Only Scan Backward using t_a_b on t
a:int4|b:int4
NULL|30
3|NULL
2|10
Limit
  ->  Sort
        Sort Key: a NULLS FIRST
        ->  Full Scan on t
Sort
  Sort Key: a
  ->  Full Scan on t
Limit
  ->  Index Scan using t_n on t
id:int4|n:int4
1|5
2|4
Limit
  ->  Index Scan Backward using t_n on t
id:int4|n:int4
5|1
4|2
Index Scan using t_a_b on t
  Index Cond: (a = 1)
id:int4
2
1
Sort
  Sort Key: b
  ->  Index Scan using t_a_b on t
        Index Cond: (a IN (1, 2))
id:int4
1
3
2
id:int4
3
2
1

# Scans that need no rows.
explain select a, b, id from t where a = 1;
select a, b, id from t where a = 1;
explain select n, c from t where n = 3;
select n, c from t where n in (3, 1) order by n;
explain select count(*) from t where a >= 1;
select count(*) from t where a >= 1;
explain select max(b) from t where a = 1;
select max(b) from t where a = 1;
explain select a from t where a = 1 for update;
explain analyze select id from t where a = 1;
----
Index Only Scan using t_a_b on t
  Index Cond: (a = 1)
a:int4|b:int4|id:int4
1|20|2
1|10|1
Index Only Scan using t_n on t
  Index Cond: (n = 3)
n:int4|c:text
1|z
3|X
Aggregate
  ->  Index Only Scan using t_a_b on t
        Index Cond: (a >= 1)
count:int8
4
Aggregate
  ->  Limit
        ->  Index Only Scan using t_a_b on t
              Index Cond: ((a = 1) AND (b IS NOT NULL))
max:int4
20
LockRows
  ->  Index Scan using t_a_b on t
        Index Cond: (a = 1)
Index Only Scan using t_a_b on t (actual time=... rows=2 loops=1)
  Index Cond: (a = 1)
  Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
Planning Time: ... ms
Execution Time: ... ms

# Values that the key does not tell exactly come back as they were.
create table e (id numeric primary key, f float8, p char(4), m numeric, j jsonb, i interval);
create index on e (f);
create index on e (p);
create unique index on e (m desc) include (j);
create index on e (i, j);
insert into e values (1.10, '-0', 'a', 2.50, '{"a": 1.0}', '30 days'), (2.000, 0, 'b ', 3.000, 'null', '1 mon');
explain select f, id from e where f = 0;
select f, id from e where f = 0 order by id;
select p, id from e where p = 'b';
select m, j, id from e where m > 0;
select m, j, id from e order by m desc;
select i, j from e where i = '720:00:00';
insert into e values (3, 0, 'c', 2.5, null, null);
update e set m = 2.5 where id = 1.1;
select m from e where m = 2.5;
select id, m from e where m = 2.5;
drop table e;
----
CREATE TABLE
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE INDEX
INSERT 0 2
Index Only Scan using e_f_idx on e
  Index Cond: (f = '0'::double precision)
f:float8|id:numeric
-0|1.10
0|2.000
p:bpchar|id:numeric
b   |2.000
m:numeric|j:jsonb|id:numeric
3.000|null|2.000
2.50|{"a": 1.0}|1.10
m:numeric|j:jsonb|id:numeric
3.000|null|2.000
2.50|{"a": 1.0}|1.10
i:interval|j:jsonb
1 mon|null
30 days|{"a": 1.0}
ERROR 23505: duplicate key value violates unique constraint "e_m_j_idx"
DETAIL: Key (m)=(2.5) already exists.
UPDATE 1
m:numeric
2.5
id:numeric|m:numeric
1.10|2.5
DROP TABLE

# Changes through an index do not meet what they have written.
explain update t set a = a + 1 where a >= 1;
update t set a = a + 1 where a >= 1 returning id, a;
update t set a = a + 10 where a in (2, 12, 3) returning id, a;
explain delete from t where a = 12;
delete from t where a = 12 returning id;
select id, a from t order by a;
begin;
insert into t values (6, 4, 1, 'six', 6);
update t set a = 4 where id = 4;
select id, a from t where a = 4 order by id;
delete from t where id = 5;
select id, a from t where a = 4 order by id;
rollback;
select id, a from t where a = 4;
----
Update on t
  ->  Index Scan using t_a_b on t
        Index Cond: (a >= 1)
id:int4|a:int4
2|2
1|2
3|3
5|4
UPDATE 4
id:int4|a:int4
2|12
1|12
3|13
UPDATE 3
Delete on t
  ->  Index Scan using t_a_b on t
        Index Cond: (a = 12)
id:int4
2
1
DELETE 2
id:int4|a:int4
5|4
3|13
4|NULL
BEGIN
INSERT 0 1
UPDATE 1
id:int4|a:int4
4|4
5|4
6|4
DELETE 1
id:int4|a:int4
4|4
6|4
ROLLBACK
id:int4|a:int4
5|4

# Parameters.
\params 4
select id from t where a = $1;
\params \N
select id from t where a = $1;
\params 1 100
select id, a from t where a > $1 and a < $2;
----
params int4
id:int4
5
params int4
id:int4
params int4 int4
id:int4|a:int4
5|4
3|13

# A comparison of rows bounds its first column, as pages by a key ask.
create table pages (tenant int, made int, id int, primary key (tenant, made, id));
create table paged (id int primary key, made int, name text);
create index paged_made on paged (made desc, id desc);
insert into pages select t, m, i from generate_series(1, 3) t, generate_series(1, 5) m, generate_series(1, 4) i;
insert into paged select i, i / 3, 'n' || i from generate_series(1, 60) i;
insert into paged values (100, null, 'none');
explain select made, id from pages where tenant = 2 and (made, id) > (3, 2) order by made, id limit 3;
select made, id from pages where tenant = 2 and (made, id) > (3, 2) order by made, id limit 3;
select made, id from pages where tenant = 2 and (made, id) <= (1, 2) order by made desc, id desc;
select tenant, made, id from pages where (tenant, made, id) >= (3, 5, 3) order by 1, 2, 3;
explain select id from paged where (made, id) < (10, 31) order by made desc, id desc limit 4;
select made, id from paged where (made, id) < (10, 31) order by made desc, id desc limit 4;
select count(*) from paged where (made, id) < (10, 31);
select count(*) from paged where (made, id) > (null, 31);
select count(*) from paged where (made, id) > (10, null);
prepare page(int, int) as select made, id from paged where ($1, $2) > (made, id) order by made desc, id desc limit 2;
execute page(2, 7);
execute page(null, 7);
----
CREATE TABLE
CREATE TABLE
CREATE INDEX
INSERT 0 60
INSERT 0 60
INSERT 0 1
Limit
  ->  Range Scan on pages
        Key: ((tenant = 2) AND (made >= 3))
        Filter: ((made > 3) OR ((made = 3) AND (id > 2)))
made:int4|id:int4
3|3
3|4
4|1
made:int4|id:int4
1|2
1|1
tenant:int4|made:int4|id:int4
3|5|3
3|5|4
Limit
  ->  Index Only Scan using paged_made on paged
        Index Cond: (made <= 10)
        Filter: ((made < 10) OR ((made = 10) AND (id < 31)))
made:int4|id:int4
10|30
9|29
9|28
9|27
count:int8
30
count:int8
0
count:int8
28
PREPARE
made:int4|id:int4
2|6
1|5
made:int4|id:int4
