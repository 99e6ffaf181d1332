# Window functions: their functions, aggregates over frames, named windows, what is refused.
create table emp (id int primary key, dep text, name text, salary int, hired date, bonus numeric(8, 2));
insert into emp values (1, 'dev', 'ann', 500, '2020-01-10', 10.5), (2, 'dev', 'bob', 400, '2020-02-01', null),
(3, 'dev', 'cid', 500, '2020-02-20', 3), (4, 'ops', 'dan', 300, '2019-12-01', 1), (5, 'ops', 'eve', 350, '2020-01-31', 2),
(6, 'ops', 'fay', null, '2020-03-01', 7.25), (7, null, 'gil', 100, '2018-05-05', null);
select count(*) from emp;

select id, row_number() over (partition by dep order by salary desc, id), rank() over (partition by dep order by salary desc),
dense_rank() over (partition by dep order by salary desc) from emp order by id;

select id, percent_rank() over (partition by dep order by salary), cume_dist() over (partition by dep order by salary) from emp order by id;

select id, ntile(3) over (order by id), ntile(4) over (partition by dep order by id), ntile(10) over (order by id) from emp order by id;

select id, lag(name) over w, lag(name, 2) over w, lag(name, 1, 'none') over w, lead(salary) over w, lead(salary, 1, -1.5) over w
from emp window w as (partition by dep order by id) order by id;

select id, lag(id, id % 3) over (order by id), lead(id, null) over (order by id), lag(id, -1) over (order by id) from emp order by id;

select id, first_value(name) over w, last_value(name) over w, nth_value(name, 2) over w from emp
window w as (partition by dep order by salary nulls first) order by id;

select id, nth_value(name, null) over (order by id), last_value(id) over (order by id rows between 1 following and 2 following) from emp order by id;

# Aggregates.
select id, sum(salary) over (partition by dep), sum(salary) over (order by id), count(*) over (), count(salary) over (partition by dep order by id),
avg(salary) over (partition by dep order by id) from emp order by id;

select id, min(name) over (order by salary), max(bonus) over (order by salary), array_agg(id) over (order by salary),
string_agg(name, ',') over (partition by dep order by id) from emp order by id;

select id, sum(salary) filter (where salary > 300) over (order by id), count(*) filter (where dep = 'dev') over () from emp order by id;

select id, sum(bonus) over (order by id rows between 1 preceding and 1 following), sum(salary) over (order by id rows 2 preceding),
sum(salary) over (order by id rows between current row and unbounded following), array_agg(id) over (order by id rows between 3 preceding and 2 preceding)
from emp order by id;

select id, salary, array_agg(id) over (order by salary range between 100 preceding and 50 following) a,
array_agg(id) over (order by salary desc nulls last range between 100 preceding and current row) b,
array_agg(id) over (order by salary range between unbounded preceding and 50 following) c from emp order by id;

select id, array_agg(id) over (order by hired range between '1 month' preceding and '10 days' following) a,
array_agg(id) over (order by hired desc range interval '40 days' preceding) b from emp order by id;

select id, array_agg(id) over (order by bonus range between 2.5 preceding and 2.5 following) from emp order by id;

select id, array_agg(id) over (order by salary groups between 1 preceding and current row) a,
array_agg(id) over (order by dep groups between current row and 1 following) b,
array_agg(id) over (order by dep groups between 2 following and 3 following) c from emp order by id;

select i, sum(i) over (order by i range between 9223372036854775807 preceding and current row) from (values (1::int8), (9223372036854775807), (-9223372036854775807)) v (i) order by i;

# Over groups, in ORDER BY, in expressions, over sub-queries and sets.
select dep, count(*), sum(count(*)) over (), rank() over (order by count(*) desc, dep), sum(sum(salary)) over (order by dep) from emp group by dep order by dep;

select dep, max(salary) - min(max(salary)) over () as above from emp group by dep having count(*) > 1 order by dep;

select id, name from emp order by row_number() over (order by name desc) limit 3;

select distinct dep, count(*) over (partition by dep) from emp order by 1, 2;

select * from (select id, row_number() over (partition by dep order by hired) as nr from emp) ranked where nr = 1 order by id;

with ranked as (select id, dep, rank() over (partition by dep order by salary desc nulls last) r from emp) select dep, array_agg(id order by id) from ranked where r <= 2 group by dep order by dep;

select e.id, (select count(*) from emp x where x.dep = e.dep), row_number() over (order by (select -e.id)) from emp e order by 1;

select id, row_number() over (order by id) + 10 * rank() over (partition by dep order by id), coalesce(lag(id) over (order by id), 0) from emp order by id;

select id, generate_series(1, 2) as g, row_number() over (order by id) from emp where id < 3 order by 1, 2;

select row_number() over (), x from unnest(array['c', 'a', 'b']) x;

select id, count(*) over (partition by salary is null, dep) from emp order by id;

select id, sum(salary) over (partition by dep order by id) from emp where salary > 300 union all select 0, 1 order by 1;

select id from emp where false and id in (select row_number() over () from emp);

select row_number() over (order by id) from emp where id > 100;

# Named windows.
select id, sum(salary) over w, count(*) over (w order by id), max(id) over (w rows between 1 preceding and current row) from emp
window w as (partition by dep), unused as (order by name) order by id;

select id, sum(id) over w2 from emp window w as (partition by dep), w2 as (w order by id desc) order by id;

select id, sum(id) over nope from emp;

select id, sum(id) over (w partition by id) from emp window w as (order by id);

select id, sum(id) over (w order by name) from emp window w as (order by id);

select id, sum(id) over (w) from emp window w as (order by id rows 1 preceding);

select id, sum(id) over (w order by id) from emp window w as (rows 1 preceding);

select id from emp window w as (order by id), w as (order by name);

# Errors.
select row_number() from emp;

select lower(name) over () from emp;

select nope(name) over () from emp;

select sum(distinct salary) over () from emp;

select array_agg(id order by id) over () from emp;

select row_number() filter (where true) over () from emp;

select percentile_disc(0.5) within group (order by id) over () from emp;

select sum(row_number() over ()) from emp;

select sum(sum(id) over ()) over () from emp;

select id from emp where row_number() over () = 1;

select id from emp group by id, row_number() over ();

select count(*) from emp having row_number() over () > 1;

select id from emp limit row_number() over ();

select sum(id) over (order by row_number() over ()) from emp;

select a.id from emp a join emp b on row_number() over () = 1;

update emp set id = row_number() over ();

insert into emp values (1, 'a') returning row_number() over ();

select id, sum(salary) over (order by dep) from emp group by id, dep;

select name, count(*) over () from emp group by dep;

select sum(id) over (rows between unbounded following and current row) from emp;

select sum(id) over (rows between current row and unbounded preceding) from emp;

select sum(id) over (rows between current row and 1 preceding) from emp;

select sum(id) over (rows between 1 following and current row) from emp;

select sum(id) over (order by id rows -1 preceding) from emp;

select sum(id) over (order by id rows null preceding) from emp;

select sum(id) over (order by id rows between current row and null following) from emp;

select sum(id) over (order by id rows id preceding) from emp;

select sum(id) over (order by id rows 'x' preceding) from emp;

select sum(id) over (groups 1 preceding) from emp;

select sum(id) over (range 1 preceding) from emp;

select sum(id) over (order by id, name range 1 preceding) from emp;

select sum(id) over (order by name range 1 preceding) from emp;

select sum(id) over (order by id range 1.5 preceding) from emp;

select sum(id) over (order by id range -1 preceding) from emp;

select sum(id) over (order by hired range '-1 day' preceding) from emp;

select ntile(0) over () from emp;

select nth_value(id, 0) over () from emp;

select id from emp for update;

select id, row_number() over () from emp for update;

select count() over () from emp;

select 1 / (row_number() over (order by id) - 3) from emp;

set work_mem = 64;
select count(*) from (select row_number() over (order by g) from generate_series(1, 10000) g) s;

reset work_mem;
select max(r), max(s) from (select row_number() over (order by g desc) r, sum(g) over (order by g) s from generate_series(1, 10000) g) s;

explain (costs off) select id, sum(salary) over (partition by dep order by hired desc), rank() over (order by id), count(*) over () from emp where id > 1;

explain (costs off) select dep, sum(count(*)) over (order by dep) from emp group by dep order by 2;

select sum(id) over (order by id rows 1 preceding exclude current row) from emp;
