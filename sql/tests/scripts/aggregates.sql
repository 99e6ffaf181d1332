# Aggregates over one table without GROUP BY.
create table t (id int primary key, a text, b int8, s int2, f float8, ok bool, at timestamptz);
----
CREATE TABLE

select count(*), count(a), sum(id), min(id), max(a), sum(f) from t;
----
count:int8|count:int8|sum:int8|min:int4|max:text|sum:float8
0|0|NULL|NULL|NULL|NULL

insert into t values (1, 'x', 10, 1, 1.5, true, '2024-01-01'), (2, 'y', 20, 2, 2.5, false, '2024-01-03'),
(3, 'x', 20, null, null, null, '2024-01-02'), (4, null, null, 4, 4, true, null);
----
INSERT 0 4

select count(*), count(a), count(distinct a), count(distinct b), count(1), count(null) from t;
----
count:int8|count:int8|count:int8|count:int8|count:int8|count:int8
4|3|2|2|4|0

select sum(id), sum(s), sum(f), sum(distinct b) as sb from t;
----
sum:int8|sum:int8|sum:float8|sb:numeric
10|7|8|30

select min(id), max(id), min(a), max(a), min(at), max(at), min(f), max(b) from t;
----
min:int4|max:int4|min:text|max:text|min:timestamptz|max:timestamptz|min:float8|max:int8
1|4|x|y|2024-01-01 00:00:00+00|2024-01-03 00:00:00+00|1.5|20

select bool_and(ok), bool_or(ok), every(ok) from t;
----
bool_and:bool|bool_or:bool|every:bool
f|t|f

select avg(f), avg(distinct f) from t;
----
avg:float8|avg:float8
2.6666666666666665|2.6666666666666665

select count(*) from t where id > 2;
----
count:int8
2

select count(*) + 1 as n, max(id) * 2 from t;
----
n:int8|?column?:int4
5|8

select count(*) filter (where id > 2), sum(id) filter (where a = 'x') from t;
----
count:int8|sum:int8
2|4

select max(id) from t having count(*) > 3;
----
max:int4
4

select max(id) from t having count(*) > 10;
----
max:int4

select 1 from t having true;
----
?column?:int4
1

select count(*) from t order by count(*);
----
count:int8
4

select count(*) from t limit 1;
----
count:int8
4

select distinct count(*) from t;
----
count:int8
4

select id, count(*) from t;
----
ERROR 42803: column "t.id" must appear in the GROUP BY clause or be used in an aggregate function [at 8]

select count(*), a from t;
----
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function [at 18]

select count(*) from t order by id;
----
ERROR 42803: column "t.id" must appear in the GROUP BY clause or be used in an aggregate function [at 33]

select * from t having true;
----
ERROR 42803: column "t.id" must appear in the GROUP BY clause or be used in an aggregate function [at 8]

select count(*) from t where count(*) > 1;
----
ERROR 42803: aggregate functions are not allowed in WHERE [at 30]

select count(count(*)) from t;
----
ERROR 42803: aggregate function calls cannot be nested [at 14]

select sum(a) from t;
----
ERROR 42883: function sum(text) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select sum(ok) from t;
----
ERROR 42883: function sum(boolean) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select min(ok) from t;
----
ERROR 42883: function min(boolean) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select sum() from t;
----
ERROR 42883: function sum() does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select sum(*) from t;
----
ERROR 42883: function sum() does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select sum(id, b) from t;
----
ERROR 42883: function sum(integer, bigint) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select count() from t;
----
ERROR 42809: count(*) must be used to call a parameterless aggregate function [at 8]

select coalesce(sum(b), 0), sum(id + 1) from t;
----
coalesce:numeric|sum:int8
50|14

select count(distinct (a)) from t;
----
count:int8
2

select count(nope) from t;
----
ERROR 42703: column "nope" does not exist [at 14]

select sum(9223372036854775807::int8) > 0 from t where id = 1;
----
?column?:bool
t

update t set b = count(*);
----
ERROR 42803: aggregate functions are not allowed in UPDATE [at 18]

insert into t (id) values (count(*));
----
ERROR 42803: aggregate functions are not allowed in VALUES [at 28]

delete from t where count(*) > 1;
----
ERROR 42803: aggregate functions are not allowed in WHERE [at 21]

select max(id) as m from t where a = 'nope';
----
m:int4
NULL
