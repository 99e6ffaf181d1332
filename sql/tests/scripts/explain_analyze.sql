# EXPLAIN ANALYZE runs the statement and prints the rows of each node.
create table t (id int primary key, v int);
----
CREATE TABLE

insert into t values (1, 1), (2, 2), (3, 0), (4, 1), (5, 2), (6, 0);
----
INSERT 0 6

explain analyze select * from t where id = 3;
explain (analyze, summary off) select * from t where id = 7;
explain (analyze, timing off, costs off, summary off) select v from t where v > 0 and id > 1;
explain (analyze, summary off) select distinct v from t;
explain (analyze, summary off) select * from t order by v, id limit 2 offset 1;
explain (analyze, summary off) select count(*), max(v) from t where v < 2;
explain (analyze, summary off) select count(*) from t having count(*) > 100;
explain (analyze, summary off) select * from t where id < 3 for update;
explain (analyze, summary off) values (1), (2);
explain (analyze off) select * from t where id = 3;
----
Point Get on t (actual time=... rows=1 loops=1)
  Key: (id = 3)
  Read: path=lease store=1 node=1 round_trips=0 requests=1 start_ts=... safe_ts=... regions=1
Planning Time: ... ms
Execution Time: ... ms
Point Get on t (actual time=... rows=0 loops=1)
  Key: (id = 7)
  Read: path=lease store=1 node=1 round_trips=0 requests=1 start_ts=... safe_ts=... regions=1
Range Scan on t (actual rows=3 loops=1)
  Key: (id > 1)
  Filter: (v > 0)
  Rows Removed by Filter: 2
  Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
Unique (actual time=... rows=3 loops=1)
  ->  Full Scan on t (actual time=... rows=6 loops=1)
        Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
Limit (actual time=... rows=2 loops=1)
  ->  Sort (actual rows=3 loops=1)
        Sort Key: v, id
        ->  Full Scan on t (actual time=... rows=6 loops=1)
              Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
Aggregate (actual time=... rows=1 loops=1)
  ->  Full Scan on t (actual time=... rows=4 loops=1)
        Filter: (v < 2)
        Rows Removed by Filter: 2
        Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
Aggregate (actual time=... rows=0 loops=1)
  Filter: (count(*) > 100)
  ->  Full Scan on t (actual time=... rows=6 loops=1)
        Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
LockRows (actual time=... rows=2 loops=1)
  ->  Range Scan on t (actual time=... rows=2 loops=1)
        Key: (id < 3)
        Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
Values Scan on "*VALUES*" (actual time=... rows=2 loops=1)
Point Get on t
  Key: (id = 3)

# It has the effects of the statement.
explain (analyze, summary off) update t set v = 10 where v = 2 returning id;
explain (analyze, summary off) delete from t where id in (1, 9);
explain (analyze, summary off) insert into t values (7, 7), (8, 8) on conflict do nothing;
explain (analyze, summary off) insert into t select id, 0 from t where id = 2 on conflict (id) do update set v = 20;
select * from t;
explain analyze insert into t values (2, 2);
explain analyze create table u (id int);
begin read only;
explain analyze update t set v = 0;
rollback;
\params 4
explain (analyze, summary off) select v from t where id = $1;
begin;
explain analyze delete from t;
rollback;
select count(*) from t;
----
Update on t (actual time=... rows=2 loops=1)
  ->  Full Scan on t (actual time=... rows=2 loops=1)
        Filter: (v = 2)
        Rows Removed by Filter: 4
        Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
Delete on t (actual time=... rows=0 loops=1)
  ->  Point Get on t (actual time=... rows=1 loops=1)
        Key: (id IN (1, 9))
        Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
Insert on t (actual time=... rows=0 loops=1)
  Conflict Resolution: NOTHING
  ->  Values Scan on "*VALUES*" (actual time=... rows=2 loops=1)
Insert on t (actual time=... rows=0 loops=1)
  Conflict Resolution: UPDATE
  ->  Point Get on t (actual time=... rows=1 loops=1)
        Key: (id = 2)
        Read: path=lease store=1 node=1 round_trips=0 requests=1 start_ts=... safe_ts=... regions=1
id:int4|v:int4
2|20
3|0
4|1
5|10
6|0
7|7
8|8
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(2) already exists.
ERROR 42601: syntax error at or near "create" [at 17]
BEGIN
ERROR 25006: cannot execute UPDATE in a read-only transaction
ROLLBACK
params int4
Point Get on t (actual time=... rows=1 loops=1)
  Key: (id = $1)
  Read: path=lease store=1 node=1 round_trips=0 requests=1 start_ts=... safe_ts=... regions=1
BEGIN
Delete on t (actual time=... rows=0 loops=1)
  ->  Full Scan on t (actual time=... rows=7 loops=1)
        Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
Planning Time: ... ms
Execution Time: ... ms
ROLLBACK
count:int8
7
