# Window functions: their functions, aggregates over frames, named windows, what is refused.
create table emp (id int primary key, dep text, name text, salary int, hired date, bonus numeric(8, 2));
insert into emp values (1, 'dev', 'ann', 500, '2020-01-10', 10.5), (2, 'dev', 'bob', 400, '2020-02-01', null),
(3, 'dev', 'cid', 500, '2020-02-20', 3), (4, 'ops', 'dan', 300, '2019-12-01', 1), (5, 'ops', 'eve', 350, '2020-01-31', 2),
(6, 'ops', 'fay', null, '2020-03-01', 7.25), (7, null, 'gil', 100, '2018-05-05', null);
select count(*) from emp;
----
CREATE TABLE
INSERT 0 7
count:int8
7

select id, row_number() over (partition by dep order by salary desc, id), rank() over (partition by dep order by salary desc),
dense_rank() over (partition by dep order by salary desc) from emp order by id;
----
id:int4|row_number:int8|rank:int8|dense_rank:int8
1|1|1|1
2|3|3|2
3|2|1|1
4|3|3|3
5|2|2|2
6|1|1|1
7|1|1|1

select id, percent_rank() over (partition by dep order by salary), cume_dist() over (partition by dep order by salary) from emp order by id;
----
id:int4|percent_rank:float8|cume_dist:float8
1|0.5|1
2|0|0.3333333333333333
3|0.5|1
4|0|0.3333333333333333
5|0.5|0.6666666666666666
6|1|1
7|0|1

select id, ntile(3) over (order by id), ntile(4) over (partition by dep order by id), ntile(10) over (order by id) from emp order by id;
----
id:int4|ntile:int4|ntile:int4|ntile:int4
1|1|1|1
2|1|2|2
3|1|3|3
4|2|1|4
5|2|2|5
6|3|3|6
7|3|1|7

select id, lag(name) over w, lag(name, 2) over w, lag(name, 1, 'none') over w, lead(salary) over w, lead(salary, 1, -1.5) over w
from emp window w as (partition by dep order by id) order by id;
----
id:int4|lag:text|lag:text|lag:text|lead:int4|lead:numeric
1|NULL|NULL|none|400|400
2|ann|NULL|ann|500|500
3|bob|ann|bob|NULL|-1.5
4|NULL|NULL|none|350|350
5|dan|NULL|dan|NULL|NULL
6|eve|dan|eve|NULL|-1.5
7|NULL|NULL|none|NULL|-1.5

select id, lag(id, id % 3) over (order by id), lead(id, null) over (order by id), lag(id, -1) over (order by id) from emp order by id;
----
id:int4|lag:int4|lead:int4|lag:int4
1|NULL|NULL|2
2|NULL|NULL|3
3|3|NULL|4
4|3|NULL|5
5|3|NULL|6
6|6|NULL|7
7|6|NULL|NULL

select id, first_value(name) over w, last_value(name) over w, nth_value(name, 2) over w from emp
window w as (partition by dep order by salary nulls first) order by id;
----
id:int4|first_value:text|last_value:text|nth_value:text
1|bob|cid|ann
2|bob|bob|NULL
3|bob|cid|ann
4|fay|dan|dan
5|fay|eve|dan
6|fay|fay|NULL
7|gil|gil|NULL

select id, nth_value(name, null) over (order by id), last_value(id) over (order by id rows between 1 following and 2 following) from emp order by id;
----
id:int4|nth_value:text|last_value:int4
1|NULL|3
2|NULL|4
3|NULL|5
4|NULL|6
5|NULL|7
6|NULL|7
7|NULL|NULL

# Aggregates.
select id, sum(salary) over (partition by dep), sum(salary) over (order by id), count(*) over (), count(salary) over (partition by dep order by id),
avg(salary) over (partition by dep order by id) from emp order by id;
----
id:int4|sum:int8|sum:int8|count:int8|count:int8|avg:numeric
1|1400|500|7|1|500.0000000000000000
2|1400|900|7|2|450.0000000000000000
3|1400|1400|7|3|466.6666666666666667
4|650|1700|7|1|300.0000000000000000
5|650|2050|7|2|325.0000000000000000
6|650|2050|7|2|325.0000000000000000
7|100|2150|7|1|100.0000000000000000

select id, min(name) over (order by salary), max(bonus) over (order by salary), array_agg(id) over (order by salary),
string_agg(name, ',') over (partition by dep order by id) from emp order by id;
----
id:int4|min:text|max:numeric|array_agg:_int4|string_agg:text
1|ann|10.50|{7,4,5,2,1,3}|ann
2|bob|2.00|{7,4,5,2}|ann,bob
3|ann|10.50|{7,4,5,2,1,3}|ann,bob,cid
4|dan|1.00|{7,4}|dan
5|dan|2.00|{7,4,5}|dan,eve
6|ann|10.50|{7,4,5,2,1,3,6}|dan,eve,fay
7|gil|NULL|{7}|gil

select id, sum(salary) filter (where salary > 300) over (order by id), count(*) filter (where dep = 'dev') over () from emp order by id;
----
id:int4|sum:int8|count:int8
1|500|3
2|900|3
3|1400|3
4|1400|3
5|1750|3
6|1750|3
7|1750|3

select id, sum(bonus) over (order by id rows between 1 preceding and 1 following), sum(salary) over (order by id rows 2 preceding),
sum(salary) over (order by id rows between current row and unbounded following), array_agg(id) over (order by id rows between 3 preceding and 2 preceding)
from emp order by id;
----
id:int4|sum:numeric|sum:int8|sum:int8|array_agg:_int4
1|10.50|500|2150|NULL
2|13.50|900|1650|NULL
3|4.00|1400|1250|{1}
4|6.00|1200|750|{1,2}
5|10.25|1150|450|{2,3}
6|9.25|650|100|{3,4}
7|7.25|450|100|{4,5}

select id, salary, array_agg(id) over (order by salary range between 100 preceding and 50 following) a,
array_agg(id) over (order by salary desc nulls last range between 100 preceding and current row) b,
array_agg(id) over (order by salary range between unbounded preceding and 50 following) c from emp order by id;
----
id:int4|salary:int4|a:_int4|b:_int4|c:_int4
1|500|{2,1,3}|{1,3}|{7,4,5,2,1,3}
2|400|{4,5,2}|{1,3,2}|{7,4,5,2}
3|500|{2,1,3}|{1,3}|{7,4,5,2,1,3}
4|300|{4,5}|{2,5,4}|{7,4,5}
5|350|{4,5,2}|{2,5}|{7,4,5,2}
6|NULL|{6}|{6}|{7,4,5,2,1,3,6}
7|100|{7}|{7}|{7}

select id, array_agg(id) over (order by hired range between '1 month' preceding and '10 days' following) a,
array_agg(id) over (order by hired desc range interval '40 days' preceding) b from emp order by id;
----
id:int4|a:_int4|b:_int4
1|{1}|{2,5,1}
2|{1,5,2}|{6,3,2}
3|{5,2,3,6}|{6,3}
4|{4}|{1,4}
5|{1,5,2}|{6,3,2,5}
6|{2,3,6}|{6}
7|{7}|{7}

select id, array_agg(id) over (order by bonus range between 2.5 preceding and 2.5 following) from emp order by id;
----
id:int4|array_agg:_int4
1|{1}
2|{2,7}
3|{4,5,3}
4|{4,5,3}
5|{4,5,3}
6|{6}
7|{2,7}

select id, array_agg(id) over (order by salary groups between 1 preceding and current row) a,
array_agg(id) over (order by dep groups between current row and 1 following) b,
array_agg(id) over (order by dep groups between 2 following and 3 following) c from emp order by id;
----
id:int4|a:_int4|b:_int4|c:_int4
1|{2,1,3}|{2,1,3,4,5,6}|{7}
2|{5,2}|{2,1,3,4,5,6}|{7}
3|{2,1,3}|{2,1,3,4,5,6}|{7}
4|{7,4}|{4,5,6,7}|NULL
5|{4,5}|{4,5,6,7}|NULL
6|{1,3,6}|{4,5,6,7}|NULL
7|{7}|{7}|NULL

select i, sum(i) over (order by i range between 9223372036854775807 preceding and current row) from (values (1::int8), (9223372036854775807), (-9223372036854775807)) v (i) order by i;
----
i:int8|sum:numeric
-9223372036854775807|-9223372036854775807
1|1
9223372036854775807|9223372036854775808

# Over groups, in ORDER BY, in expressions, over sub-queries and sets.
select dep, count(*), sum(count(*)) over (), rank() over (order by count(*) desc, dep), sum(sum(salary)) over (order by dep) from emp group by dep order by dep;
----
dep:text|count:int8|sum:numeric|rank:int8|sum:numeric
dev|3|7|1|1400
ops|3|7|2|2050
NULL|1|7|3|2150

select dep, max(salary) - min(max(salary)) over () as above from emp group by dep having count(*) > 1 order by dep;
----
dep:text|above:int4
dev|150
ops|0

select id, name from emp order by row_number() over (order by name desc) limit 3;
----
id:int4|name:text
7|gil
6|fay
5|eve

select distinct dep, count(*) over (partition by dep) from emp order by 1, 2;
----
dep:text|count:int8
dev|3
ops|3
NULL|1

select * from (select id, row_number() over (partition by dep order by hired) as nr from emp) ranked where nr = 1 order by id;
----
id:int4|nr:int8
1|1
4|1
7|1

with ranked as (select id, dep, rank() over (partition by dep order by salary desc nulls last) r from emp) select dep, array_agg(id order by id) from ranked where r <= 2 group by dep order by dep;
----
dep:text|array_agg:_int4
dev|{1,3}
ops|{4,5}
NULL|{7}

select e.id, (select count(*) from emp x where x.dep = e.dep), row_number() over (order by (select -e.id)) from emp e order by 1;
----
id:int4|count:int8|row_number:int8
1|3|7
2|3|6
3|3|5
4|3|4
5|3|3
6|3|2
7|0|1

select id, row_number() over (order by id) + 10 * rank() over (partition by dep order by id), coalesce(lag(id) over (order by id), 0) from emp order by id;
----
id:int4|?column?:int8|coalesce:int4
1|11|0
2|22|1
3|33|2
4|14|3
5|25|4
6|36|5
7|17|6

select id, generate_series(1, 2) as g, row_number() over (order by id) from emp where id < 3 order by 1, 2;
----
id:int4|g:int4|row_number:int8
1|1|1
1|2|1
2|1|2
2|2|2

select row_number() over (), x from unnest(array['c', 'a', 'b']) x;
----
row_number:int8|x:text
1|c
2|a
3|b

select id, count(*) over (partition by salary is null, dep) from emp order by id;
----
id:int4|count:int8
1|3
2|3
3|3
4|2
5|2
6|1
7|1

select id, sum(salary) over (partition by dep order by id) from emp where salary > 300 union all select 0, 1 order by 1;
----
id:int4|sum:int8
0|1
1|500
2|900
3|1400
5|350

select id from emp where false and id in (select row_number() over () from emp);
----
id:int4

select row_number() over (order by id) from emp where id > 100;
----
row_number:int8

# Named windows.
select id, sum(salary) over w, count(*) over (w order by id), max(id) over (w rows between 1 preceding and current row) from emp
window w as (partition by dep), unused as (order by name) order by id;
----
id:int4|sum:int8|count:int8|max:int4
1|1400|1|1
2|1400|2|2
3|1400|3|3
4|650|1|4
5|650|2|5
6|650|3|6
7|100|1|7

select id, sum(id) over w2 from emp window w as (partition by dep), w2 as (w order by id desc) order by id;
----
id:int4|sum:int8
1|6
2|5
3|3
4|15
5|11
6|6
7|7

select id, sum(id) over nope from emp;
----
ERROR 42704: window "nope" does not exist [at 25]

select id, sum(id) over (w partition by id) from emp window w as (order by id);
----
ERROR 42P20: cannot override PARTITION BY clause of window "w" [at 25]

select id, sum(id) over (w order by name) from emp window w as (order by id);
----
ERROR 42P20: cannot override ORDER BY clause of window "w" [at 25]

select id, sum(id) over (w) from emp window w as (order by id rows 1 preceding);
----
ERROR 42P20: cannot copy window "w" because it has a frame clause [at 25]
HINT: Omit the parentheses in this OVER clause.

select id, sum(id) over (w order by id) from emp window w as (rows 1 preceding);
----
ERROR 42P20: cannot copy window "w" because it has a frame clause [at 25]

select id from emp window w as (order by id), w as (order by name);
----
ERROR 42P20: window "w" is already defined [at 52]

# Errors.
select row_number() from emp;
----
ERROR 42809: window function row_number requires an OVER clause [at 8]

select lower(name) over () from emp;
----
ERROR 42809: OVER specified, but lower is not a window function nor an aggregate function [at 8]

select nope(name) over () from emp;
----
ERROR 42883: function nope(text) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select sum(distinct salary) over () from emp;
----
ERROR 0A000: DISTINCT is not implemented for window functions [at 8]

select array_agg(id order by id) over () from emp;
----
ERROR 0A000: aggregate ORDER BY is not implemented for window functions [at 8]

select row_number() filter (where true) over () from emp;
----
ERROR 0A000: FILTER is not implemented for non-aggregate window functions [at 8]

select percentile_disc(0.5) within group (order by id) over () from emp;
----
ERROR 0A000: OVER is not supported for ordered-set aggregate percentile_disc [at 8]

select sum(row_number() over ()) from emp;
----
ERROR 42803: aggregate function calls cannot contain window function calls [at 12]

select sum(sum(id) over ()) over () from emp;
----
ERROR 42P20: window function calls cannot be nested [at 12]

select id from emp where row_number() over () = 1;
----
ERROR 42P20: window functions are not allowed in WHERE [at 26]

select id from emp group by id, row_number() over ();
----
ERROR 42P20: window functions are not allowed in GROUP BY [at 33]

select count(*) from emp having row_number() over () > 1;
----
ERROR 42P20: window functions are not allowed in HAVING [at 33]

select id from emp limit row_number() over ();
----
ERROR 42P20: window functions are not allowed in LIMIT [at 26]

select sum(id) over (order by row_number() over ()) from emp;
----
ERROR 42P20: window functions are not allowed in window definitions [at 31]

select a.id from emp a join emp b on row_number() over () = 1;
----
ERROR 42P20: window functions are not allowed in JOIN conditions [at 38]

update emp set id = row_number() over ();
----
ERROR 42P20: window functions are not allowed in UPDATE [at 21]

insert into emp values (1, 'a') returning row_number() over ();
----
ERROR 42P20: window functions are not allowed in RETURNING [at 43]

select id, sum(salary) over (order by dep) from emp group by id, dep;
----
id:int4|sum:int8
1|1400
2|1400
3|1400
4|2050
5|2050
6|2050
7|2150

select name, count(*) over () from emp group by dep;
----
ERROR 42803: column "emp.name" must appear in the GROUP BY clause or be used in an aggregate function [at 8]

select sum(id) over (rows between unbounded following and current row) from emp;
----
ERROR 42P20: frame start cannot be UNBOUNDED FOLLOWING [at 35]

select sum(id) over (rows between current row and unbounded preceding) from emp;
----
ERROR 42P20: frame end cannot be UNBOUNDED PRECEDING [at 51]

select sum(id) over (rows between current row and 1 preceding) from emp;
----
ERROR 42P20: frame starting from current row cannot have preceding rows [at 51]

select sum(id) over (rows between 1 following and current row) from emp;
----
ERROR 42P20: frame starting from following row cannot have preceding rows [at 51]

select sum(id) over (order by id rows -1 preceding) from emp;
----
ERROR 22013: frame starting offset must not be negative

select sum(id) over (order by id rows null preceding) from emp;
----
ERROR 22004: frame starting offset must not be null

select sum(id) over (order by id rows between current row and null following) from emp;
----
ERROR 22004: frame ending offset must not be null

select sum(id) over (order by id rows id preceding) from emp;
----
ERROR 42P10: argument of ROWS must not contain variables [at 39]

select sum(id) over (order by id rows 'x' preceding) from emp;
----
ERROR 22P02: invalid input syntax for type bigint: "x" [at 39]

select sum(id) over (groups 1 preceding) from emp;
----
ERROR 42P20: GROUPS mode requires an ORDER BY clause [at 21]

select sum(id) over (range 1 preceding) from emp;
----
ERROR 42P20: RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column [at 21]

select sum(id) over (order by id, name range 1 preceding) from emp;
----
ERROR 42P20: RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column [at 21]

select sum(id) over (order by name range 1 preceding) from emp;
----
ERROR 0A000: RANGE with offset PRECEDING/FOLLOWING is not supported for column type text [at 42]

select sum(id) over (order by id range 1.5 preceding) from emp;
----
ERROR 0A000: RANGE with offset PRECEDING/FOLLOWING is not supported for column type integer and offset type numeric [at 40]
HINT: Cast the offset value to an appropriate type.

select sum(id) over (order by id range -1 preceding) from emp;
----
ERROR 22013: invalid preceding or following size in window function

select sum(id) over (order by hired range '-1 day' preceding) from emp;
----
ERROR 22013: invalid preceding or following size in window function

select ntile(0) over () from emp;
----
ERROR 22014: argument of ntile must be greater than zero

select nth_value(id, 0) over () from emp;
----
ERROR 22016: argument of nth_value must be greater than zero

select id from emp for update;
----
id:int4
1
2
3
4
5
6
7

select id, row_number() over () from emp for update;
----
ERROR 0A000: FOR UPDATE is not allowed with window functions

select count() over () from emp;
----
ERROR 42809: count(*) must be used to call a parameterless aggregate function [at 8]

select 1 / (row_number() over (order by id) - 3) from emp;
----
ERROR 22012: division by zero

set work_mem = 64;
select count(*) from (select row_number() over (order by g) from generate_series(1, 10000) g) s;
----
SET
ERROR 53200: out of memory
DETAIL: The statement needs more than 64 kB for sorts, groups, joins or returned rows.

reset work_mem;
select max(r), max(s) from (select row_number() over (order by g desc) r, sum(g) over (order by g) s from generate_series(1, 10000) g) s;
----
RESET
max:int8|max:int8
10000|50005000

explain (costs off) select id, sum(salary) over (partition by dep order by hired desc), rank() over (order by id), count(*) over () from emp where id > 1;
----
WindowAgg
  ->  WindowAgg
        Sort Key: id
        ->  WindowAgg
              Partition Key: dep
              Sort Key: hired DESC
              ->  Range Scan on emp
                    Key: (id > 1)

explain (costs off) select dep, sum(count(*)) over (order by dep) from emp group by dep order by 2;
----
Sort
  Sort Key: sum(count(*)) OVER (?)
  ->  WindowAgg
        Sort Key: dep
        ->  HashAggregate
              Group Key: dep
              ->  Full Scan on emp

select sum(id) over (order by id rows 1 preceding exclude current row) from emp;
----
ERROR 0A000: EXCLUDE of a frame is not supported yet [at 51]

# Keys must have an equality, and an order in ORDER BY.
select rank() over (partition by '{}'::json);
select rank() over (order by '{}'::json);
select rank() over (order by '1'::xid);
----
ERROR 42883: could not identify an equality operator for type json [at 34]
ERROR 42883: could not identify an ordering operator for type json [at 30]
HINT: Use an explicit ordering operator or modify the query.
ERROR 42883: could not identify an ordering operator for type xid [at 30]
HINT: Use an explicit ordering operator or modify the query.
