# EXPLAIN (FORMAT JSON) and the options of EXPLAIN.
create table t (id int primary key, v int, name text);
create index t_v on t (v);
insert into t select i, i % 3, 'n' || i from generate_series(1, 6) i;
----
CREATE TABLE
CREATE INDEX
INSERT 0 6

explain (format json) select * from t where id = 3;
explain (format json, verbose) select v, count(*) as n from t where name <> 'x' group by v having count(*) > 1 order by n desc limit 2;
explain (format json) select a.id from t a left join t b on a.id = b.v and a.v < 1 where b.id is null;
explain (format json) with w as (select 1 as x union all select 2) select * from w where x in (select v from t);
explain (format json) insert into t values (1, 2, 'x') on conflict do nothing;
explain (format json) delete from t where v = 1;
explain (format json) create table u as select 1 as a;
explain (format json) select relname from pg_class;
explain (format json) values (1), (2);
----
[
  {
    "Plan": {
      "Node Type": "Point Get",
      "Parallel Aware": false,
      "Async Capable": false,
      "Relation Name": "t",
      "Alias": "t",
      "Key": "(id = 3)"
    }
  }
]
[
  {
    "Plan": {
      "Node Type": "Limit",
      "Parallel Aware": false,
      "Async Capable": false,
      "Output": ["v", "count(*)"],
      "Plans": [
        {
          "Node Type": "Sort",
          "Parent Relationship": "Outer",
          "Parallel Aware": false,
          "Async Capable": false,
          "Sort Key": ["count(*) DESC"],
          "Plans": [
            {
              "Node Type": "Aggregate",
              "Parent Relationship": "Outer",
              "Parallel Aware": false,
              "Async Capable": false,
              "Strategy": "Hashed",
              "Group Key": ["v"],
              "Filter": "(count(*) > 1)",
              "Plans": [
                {
                  "Node Type": "Full Scan",
                  "Parent Relationship": "Outer",
                  "Parallel Aware": false,
                  "Async Capable": false,
                  "Scan Direction": "Forward",
                  "Relation Name": "t",
                  "Alias": "t",
                  "Filter": "(name <> 'x'::text)"
                }
              ]
            }
          ]
        }
      ]
    }
  }
]
[
  {
    "Plan": {
      "Node Type": "Hash Join",
      "Parallel Aware": false,
      "Async Capable": false,
      "Join Type": "Left",
      "Hash Cond": "(a.id = b.v)",
      "Join Filter": "(a.v < 1)",
      "Filter": "(b.id IS NULL)",
      "Plans": [
        {
          "Node Type": "Full Scan",
          "Parent Relationship": "Outer",
          "Parallel Aware": false,
          "Async Capable": false,
          "Scan Direction": "Forward",
          "Relation Name": "t",
          "Alias": "a"
        },
        {
          "Node Type": "Full Scan",
          "Parent Relationship": "Inner",
          "Parallel Aware": false,
          "Async Capable": false,
          "Scan Direction": "Forward",
          "Relation Name": "t",
          "Alias": "b"
        }
      ]
    }
  }
]
[
  {
    "Plan": {
      "Node Type": "CTE Scan",
      "Parallel Aware": false,
      "Async Capable": false,
      "CTE Name": "w",
      "Filter": "(x = ANY (SubPlan 1))",
      "Plans": [
        {
          "Node Type": "Append",
          "Parent Relationship": "InitPlan",
          "Subplan Name": "CTE w",
          "Parallel Aware": false,
          "Async Capable": false,
          "Plans": [
            {
              "Node Type": "Result",
              "Parent Relationship": "Member",
              "Parallel Aware": false,
              "Async Capable": false
            },
            {
              "Node Type": "Result",
              "Parent Relationship": "Member",
              "Parallel Aware": false,
              "Async Capable": false
            }
          ]
        },
        {
          "Node Type": "Full Scan",
          "Parent Relationship": "SubPlan",
          "Subplan Name": "SubPlan 1",
          "Parallel Aware": false,
          "Async Capable": false,
          "Scan Direction": "Forward",
          "Relation Name": "t",
          "Alias": "t"
        }
      ]
    }
  }
]
[
  {
    "Plan": {
      "Node Type": "ModifyTable",
      "Parallel Aware": false,
      "Async Capable": false,
      "Operation": "Insert",
      "Relation Name": "t",
      "Alias": "t",
      "Conflict Resolution": "NOTHING",
      "Plans": [
        {
          "Node Type": "Result",
          "Parent Relationship": "Outer",
          "Parallel Aware": false,
          "Async Capable": false
        }
      ]
    }
  }
]
[
  {
    "Plan": {
      "Node Type": "ModifyTable",
      "Parallel Aware": false,
      "Async Capable": false,
      "Operation": "Delete",
      "Relation Name": "t",
      "Alias": "t",
      "Plans": [
        {
          "Node Type": "Index Scan",
          "Parent Relationship": "Outer",
          "Parallel Aware": false,
          "Async Capable": false,
          "Scan Direction": "Forward",
          "Index Name": "t_v",
          "Relation Name": "t",
          "Alias": "t",
          "Index Cond": "(v = 1)"
        }
      ]
    }
  }
]
[
  {
    "Plan": {
      "Node Type": "Result",
      "Parallel Aware": false,
      "Async Capable": false
    }
  }
]
[
  {
    "Plan": {
      "Node Type": "System Scan",
      "Parallel Aware": false,
      "Async Capable": false,
      "Relation Name": "pg_class"
    }
  }
]
[
  {
    "Plan": {
      "Node Type": "Values Scan",
      "Parallel Aware": false,
      "Async Capable": false
    }
  }
]

explain (analyze, timing off, summary off, format json) select * from t where v = 1 and id > 1;
explain (analyze, timing off, summary off, format json) update t set v = 5 where id in (1, 2) returning id;
explain (analyze, timing off, summary off) select count(*) from t a, t b where a.v = b.id;
explain (analyze, timing off, summary off) select (select max(id) from t b where b.v = a.id), id from t a where id < 4;
explain (analyze, timing off, summary off) with w as (select * from t) select * from w where v = 0;
explain (analyze, timing off, summary off) select * from t a join t b on b.id = a.v where a.id = 99;
explain (analyze) select 1;
explain (summary) select 1;
explain (verbose, costs off, buffers on, settings true, timing off) select id + 1 as next, name from t;
----
[
  {
    "Plan": {
      "Node Type": "Index Scan",
      "Parallel Aware": false,
      "Async Capable": false,
      "Scan Direction": "Forward",
      "Index Name": "t_v",
      "Relation Name": "t",
      "Alias": "t",
      "Actual Rows": 1,
      "Actual Loops": 1,
      "Index Cond": "(v = 1)",
      "Filter": "(id > 1)",
      "Rows Removed by Filter": 1,
      "Read": "path=lease store=1 node=1 round_trips=2 requests=2 start_ts=... safe_ts=... regions=1"
    }
  }
]
[
  {
    "Plan": {
      "Node Type": "ModifyTable",
      "Parallel Aware": false,
      "Async Capable": false,
      "Operation": "Update",
      "Relation Name": "t",
      "Alias": "t",
      "Actual Rows": 2,
      "Actual Loops": 1,
      "Plans": [
        {
          "Node Type": "Point Get",
          "Parent Relationship": "Outer",
          "Parallel Aware": false,
          "Async Capable": false,
          "Relation Name": "t",
          "Alias": "t",
          "Actual Rows": 2,
          "Actual Loops": 1,
          "Key": "(id IN (1, 2))",
          "Read": "path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1"
        }
      ]
    }
  }
]
Aggregate (actual rows=1 loops=1)
  ->  Hash Join (actual rows=4 loops=1)
        Hash Cond: (a.v = b.id)
        ->  Full Scan on t a (actual rows=6 loops=1)
              Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
        ->  Full Scan on t b (actual rows=6 loops=1)
              Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
Range Scan on t a (actual rows=3 loops=1)
  Key: (id < 4)
  Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
  SubPlan 1
    ->  Aggregate (actual rows=1 loops=3)
          ->  Limit (actual rows=1 loops=3)
                ->  Index Only Scan Backward using t_v on t b (actual rows=1 loops=3)
                      Index Cond: (v = $0)
                      Read: path=lease store=1 node=1 round_trips=3 requests=3 start_ts=... safe_ts=... regions=1
CTE Scan on w (actual rows=2 loops=1)
  Filter: (v = 0)
  Rows Removed by Filter: 4
  CTE w
    ->  Full Scan on t (actual rows=6 loops=1)
          Read: path=lease store=1 node=1 round_trips=1 requests=1 start_ts=... safe_ts=... regions=1
Nested Loop (actual rows=0 loops=1)
  ->  Point Get on t a (actual rows=0 loops=1)
        Key: (id = 99)
        Read: path=lease store=1 node=1 round_trips=0 requests=1 start_ts=... safe_ts=... regions=1
  ->  Point Get on t b (never executed)
        Key: (id = $0)
Result (actual time=... rows=1 loops=1)
Planning Time: ... ms
Execution Time: ... ms
Result
Planning Time: ... ms
Full Scan on t
  Output: (id + 1), name

explain (format json, timing off, analyze off) select 1;
explain (format text) select 1;
explain (foo) select 1;
explain (analyze, foo 3) select 1;
explain (format foo) select 1;
explain (format) select 1;
explain (format yaml) select 1;
explain (format xml) select 1;
explain (timing) select 1;
explain (wal on) select 1;
explain (costs 3) select 1;
explain (costs foo) select 1;
explain (analyze 0) select 1;
explain (analyze on, timing 0, summary 'off') select 1;
explain create table x (a int);
explain drop table t;
explain analyze create table u as select 1;
explain (format json) select 1/0;
\params 2
explain (format json, analyze, timing off, summary off) select name from t where id = $1;
prepare p(int) as select name from t where id = $1;
explain (format json) execute p(3);
explain (costs off) execute p(3);
----
[
  {
    "Plan": {
      "Node Type": "Result",
      "Parallel Aware": false,
      "Async Capable": false
    }
  }
]
Result
ERROR 42601: unrecognized EXPLAIN option "foo" [at 10]
ERROR 42601: unrecognized EXPLAIN option "foo" [at 19]
ERROR 22023: unrecognized value for EXPLAIN option "format": "foo" [at 10]
ERROR 42601: format requires a parameter
ERROR 0A000: this format of EXPLAIN is not supported yet [at 17]
ERROR 0A000: this format of EXPLAIN is not supported yet [at 17]
ERROR 22023: EXPLAIN option TIMING requires ANALYZE
ERROR 22023: EXPLAIN option WAL requires ANALYZE
ERROR 42601: costs requires a Boolean value
ERROR 42601: costs requires a Boolean value
Result
Result (actual rows=1 loops=1)
ERROR 42601: syntax error at or near "create" [at 9]
ERROR 42601: syntax error at or near "drop" [at 9]
ERROR 0A000: EXPLAIN ANALYZE of this statement is not supported yet
ERROR 22012: division by zero
params int4
[
  {
    "Plan": {
      "Node Type": "Point Get",
      "Parallel Aware": false,
      "Async Capable": false,
      "Relation Name": "t",
      "Alias": "t",
      "Actual Rows": 1,
      "Actual Loops": 1,
      "Key": "(id = $1)",
      "Read": "path=lease store=1 node=1 round_trips=0 requests=1 start_ts=... safe_ts=... regions=1"
    }
  }
]
PREPARE
[
  {
    "Plan": {
      "Node Type": "Point Get",
      "Parallel Aware": false,
      "Async Capable": false,
      "Relation Name": "t",
      "Alias": "t",
      "Key": "(id = $1)"
    }
  }
]
Point Get on t
  Key: (id = $1)

# Names of tables, and one output for each node.
create table named (id int primary key, m int);
create view seen as select id as p, m + 1 as q from named;
explain (format json, verbose) select * from (select id, m from named) x(p, q) where q = 1;
explain (verbose) select p + 1, q from (select id, m from named) x(p, q) where q = 1;
explain (verbose) select q, p from seen where p = 1;
explain (verbose) select q from (select id, m from named order by m limit 1) x(p, q);
explain (verbose) select * from (named n join named o on n.id = o.m) j(a, b, c, d) where a > 1;
explain select * from named n where id = 1;
explain select * from named as named where id > 1;
explain select * from named "N" join named o on o.id = "N".m order by "N".id;
explain update named n set m = 1 where n.id = 1;
explain update named n set m = 1 from named o where n.id = o.m;
explain delete from named n using named o where n.m = o.m;
explain (format json) delete from named n where m = 1;
drop view seen;
drop table named;
----
CREATE TABLE
CREATE VIEW
[
  {
    "Plan": {
      "Node Type": "Full Scan",
      "Parallel Aware": false,
      "Async Capable": false,
      "Scan Direction": "Forward",
      "Relation Name": "named",
      "Alias": "named",
      "Filter": "(m = 1)",
      "Output": ["id", "m"]
    }
  }
]
Full Scan on named
  Filter: (m = 1)
  Output: (id + 1), m
Point Get on named
  Key: (id = 1)
  Output: (m + 1), id
Limit
  Output: m
  ->  Sort
        Sort Key: m
        ->  Full Scan on named
Hash Join
  Hash Cond: (a = d)
  Output: a, b, c, d
  ->  Range Scan on named n
        Key: (id > 1)
        Output: id, m
  ->  Full Scan on named o
        Output: id, m
Point Get on named n
  Key: (id = 1)
Range Scan on named
  Key: (id > 1)
Hash Join
  Hash Cond: ("N".m = o.id)
  ->  Full Scan on named "N"
  ->  Full Scan on named o
Update on named n
  ->  Point Get on named n
        Key: (id = 1)
Update on named n
  ->  Hash Join
        Hash Cond: (n.id = o.m)
        ->  Full Scan on named n
        ->  Full Scan on named o
Delete on named n
  ->  Hash Join
        Hash Cond: (n.m = o.m)
        ->  Full Scan on named n
        ->  Full Scan on named o
[
  {
    "Plan": {
      "Node Type": "ModifyTable",
      "Parallel Aware": false,
      "Async Capable": false,
      "Operation": "Delete",
      "Relation Name": "named",
      "Alias": "n",
      "Plans": [
        {
          "Node Type": "Full Scan",
          "Parent Relationship": "Outer",
          "Parallel Aware": false,
          "Async Capable": false,
          "Scan Direction": "Forward",
          "Relation Name": "named",
          "Alias": "n",
          "Filter": "(m = 1)"
        }
      ]
    }
  }
]
DROP VIEW
DROP TABLE
