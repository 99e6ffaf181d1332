# An aggregate belongs to the nearest query whose columns its arguments use.
create table em (id int primary key, dept text, sal int);
insert into em values (1,'a',10),(2,'a',20),(3,'b',30),(4,'b',40),(5,'c',null);
----
CREATE TABLE
INSERT 0 5

select (select count(e.id)) from em e;
select (select sum(e.id) from em x limit 1) from em e;
select dept from em e group by dept having exists (select 1 where count(e.id)>1) order by 1;
select (select sum(x.id + count(e.id)) from em x) from em e;
select (select max(g) from generate_series(1, count(e.id)) g) from em e;
select (with w as (select count(e.id) c) select c from w) from em e;
select (select c from (select count(e.id) c) q) from em e;
select (select count(e.id) filter (where x.id > 1) from em x) from em e;
select (select count(e.id) filter (where e.id > 3) from em x limit 1) from em e;
select dept, (select string_agg(e.dept, ',' order by e.id)) from em e group by dept order by 1;
select (select count(*) from em x where x.id < count(e.id)) from em e;
select (select (select count(e.id))) from em e;
select (select (select count(e.id) from em y limit 1) + count(x.id) from em x) from em e;
select dept from em e group by dept order by (select sum(e.id)) desc;
select (select count(e.id + (select x.id)) from em x) from em e;
select sum((select count(x.id) from em x where x.id = e.id)) from em e;
select (select count(e.*)) from em e;
select (select sum(count(e.id)) over ()) from em e;
select (select count(e.id) over ()) from em e limit 2;
select count(*), (select max(e.dept) from em x where x.id = 1) from em e;
select (select count(e.id) from em x group by x.dept limit 1) from em e;
select (select max(x.id) from em x having count(e.id) > 3) from em e;
select (select percentile_cont(0.5) within group (order by e.id) from em x limit 1) from em e;
----
count:int8
5
sum:int8
15
dept:text
a
b
sum:numeric
40
max:int8
5
c:int8
5
c:int8
5
count:int8
4
4
4
4
4
count:int8
2
dept:text|string_agg:text
a|a,a
b|b,b
c|c
count:int8
4
count:int8
5
?column?:int8
10
dept:text
b
c
a
count:int8
5
5
5
5
5
sum:numeric
5
count:int8
5
sum:numeric
5
count:int8
1
1
count:int8|max:text
5|c
count:int8
5
max:int4
5
percentile_cont:float8
3

select (select sum(count(e.id)) from em x) from em e;
select e.id, (select count(e.id)) from em e;
select (select e.id + count(e.id)) from em e;
select * from em e where (select count(e.id)) > 1;
select * from em e, lateral (select count(e.id)) x;
select * from em e, generate_series(1, count(e.id)) x;
select (select percentile_cont(x.id / 10.0) within group (order by e.id) from em x) from em e;
select * from em e join em f on (select count(e.id)) > 0;
select 1 from em e group by (select count(e.id));
update em e set sal = (select count(e.id));
select sum((select count(e.id))) from em e;
select * from em e where count(nocol) > 1;
select dept, count(*) from em e group by dept having count(*) = (select max(count(e.id)));
delete from em e where id = (select max(e.id));
insert into em select 6 returning (select count(id));
----
ERROR 42803: aggregate function calls cannot be nested [at 20]
ERROR 42803: column "e.id" must appear in the GROUP BY clause or be used in an aggregate function [at 8]
ERROR 42803: subquery uses ungrouped column "e.id" from outer query [at 16]
ERROR 42803: aggregate functions are not allowed in WHERE [at 34]
ERROR 42803: aggregate functions are not allowed in FROM clause of their own query level [at 37]
ERROR 42803: aggregate functions are not allowed in functions in FROM [at 40]
ERROR 42803: outer-level aggregate cannot contain a lower-level variable in its direct arguments [at 32]
ERROR 42803: aggregate functions are not allowed in JOIN conditions [at 41]
ERROR 42803: aggregate functions are not allowed in GROUP BY [at 37]
ERROR 42803: aggregate functions are not allowed in UPDATE [at 31]
ERROR 42803: aggregate function calls cannot be nested [at 20]
ERROR 42703: column "nocol" does not exist [at 32]
ERROR 42803: aggregate function calls cannot be nested [at 77]
ERROR 42803: aggregate functions are not allowed in WHERE [at 37]
ERROR 42803: aggregate functions are not allowed in RETURNING [at 43]

# Not yet.
select (select count(e.id + (select 1))) from em e;
----
ERROR 0A000: a sub-query in an aggregate of an outer query is not supported yet [at 16]
