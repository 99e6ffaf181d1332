# Rows of functions as values, and their fields.
select (information_schema._pg_expandarray(array['a', 'b'])).n, information_schema._pg_expandarray(array['a', 'b']);
----
n:int4|_pg_expandarray:record
1|(a,1)
2|(b,2)

select (k).x, (k).n, k from (select information_schema._pg_expandarray(array[7, 8]) k) s;
----
x:int4|n:int4|k:record
7|1|(7,1)
8|2|(8,2)

select (s.k).x + 1 from (select information_schema._pg_expandarray('{5,6}'::int8[]) k) s where (k).n = 2;
----
?column?:int8
7

select (information_schema._pg_expandarray(array[1, 2])).*;
----
x:int4|n:int4
1|1
2|2

select * from information_schema._pg_expandarray(array['x', 'y']);
----
x:text|n:int4
x|1
y|2

select x, n from information_schema._pg_expandarray('1 2'::int2vector) as k (x, n) order by n desc;
----
x:int2|n:int4
2|2
1|1

select (json_each('{"a": 1, "b": [2]}')).key, (json_each('{"a": 1, "b": [2]}')).value;
----
key:text|value:json
a|1
b|[2]

select (jsonb_each('{"a": 1}')).*;
----
key:text|value:jsonb
a|1

select (row(1, 'a'::text)).f2, (row(1, 2)).*;
----
f2:text|f1:int4|f2:int4
a|1|2

create table pt (a int, b text);
insert into pt values (1, 'x');
select (pt).a, (pt).b, (p).* from pt, lateral (select pt as p) q;
----
CREATE TABLE
INSERT 0 1
ERROR 0A000: the fields of a row that comes from elsewhere are not supported yet [at 25]

select (pt).* from pt;
----
a:int4|b:text
1|x

select pg_typeof((information_schema._pg_expandarray(array[1::int8])).x);
----
pg_typeof:regtype
bigint

select (1).x;
----
ERROR 42809: column notation .x applied to type integer, which is not a composite type [at 9]

select (row(1, 2)).f3;
----
ERROR 42703: could not identify column "f3" in record data type [at 9]

select (1).*;
----
ERROR 42809: type integer is not composite

select (information_schema._pg_expandarray(array[1])).z;
----
ERROR 42703: could not identify column "z" in record data type [at 9]

select information_schema._pg_expandarray(1);
----
ERROR 42883: function information_schema._pg_expandarray(integer) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select information_schema.nothing(1);
----
ERROR 0A000: function information_schema.nothing is not supported yet [at 8]

# Rows are keys: of DISTINCT, GROUP BY, set operations, joins and IN. NULLs in them are equal.
create table rk (a int, b numeric, c text);
insert into rk values (1, 1.0, 'x'), (1, 1.00, 'x'), (1, 2, 'x'), (2, null, null), (2, null, null), (3, null, null);
select count(distinct (a, b)), count(distinct ((a, b), c)), count(distinct rk) from rk;
select row(a, b), count(*) from rk group by row(a, b) order by 1, 2;
select rk, count(*) from rk group by rk order by 1;
select distinct (a, c) from rk order by 1;
select distinct on ((a, c)) a, b from rk order by (a, c), b;
select distinct on ((a, c)) a, c from rk where a = 1;
select array_agg(distinct (a, b)), json_agg(distinct (a, c)) from rk;
select count(distinct array[(a, b)]) from rk;
(select (a, b) from rk union select (9, 9.0)) order by 1;
(select (a, b) from rk except select (1, 1.000)) order by 1;
select count(*) from (select (a, b) from rk intersect all select (1, 1.000) from generate_series(1, 3)) s;
with recursive w(r, n) as (select (1, 0), 0 union select (1, n % 2), (n + 1) % 3 from w) select count(*) from w;
select count(*) from rk x join rk y on x = y;
select count(*) from rk x join rk y on (x.a, x.b) = (y.a, y.b);
select count(*) from rk x left join rk y on x = y and y.a = 1 where y is null;
select a, b from rk x where x in (select y from rk y where y.b > 1.5);
select a, b from rk x where x not in (select y from rk y where y.a = 1) order by a;
----
CREATE TABLE
INSERT 0 6
count:int8|count:int8|count:int8
4|4|4
row:record|count:int8
(1,1.0)|2
(1,2)|1
(2,)|2
(3,)|1
rk:record|count:int8
(1,1.0,x)|2
(1,2,x)|1
(2,,)|2
(3,,)|1
row:record
(1,x)
(2,)
(3,)
a:int4|b:numeric
1|1.0
2|NULL
3|NULL
a:int4|c:text
1|x
array_agg:_record|json_agg:json
{"(1,1.0)","(1,2)","(2,)","(3,)"}|[{"f1":1,"f2":"x"}, 
 {"f1":2,"f2":null}, 
 {"f1":3,"f2":null}]
count:int8
4
row:record
(1,1.0)
(1,2)
(2,)
(3,)
(9,9.0)
row:record
(1,2)
(2,)
(3,)
count:int8
2
count:int8
3
count:int8
10
count:int8
5
count:int8
3
a:int4|b:numeric
1|2
a:int4|b:numeric
2|NULL
2|NULL
3|NULL

# Values of a row that have no equality are no keys.
create table rj (id int, j json, b jsonb);
insert into rj values (1, '{"a": 1}', '{"a": 1, "b": 2}'), (2, '{"a":1}', '{"b": 2, "a": 1}');
select count(distinct (b, 1)) from rj;
select count(distinct (j, 1)) from rj;
select count(*) from rj group by row(row(j));
select distinct (j, 1) from rj;
select distinct on ((j, 1)) id from rj;
select distinct on ((j, 1)) id from rj order by (j, 1);
select count(distinct (1, array[j])) from rj;
select (j, 1) from rj union select (j, 1) from rj;
select count(*) from rj x join rj y on x = y;
select id from rj x where x in (select y from rj y);
----
CREATE TABLE
INSERT 0 2
count:int8
1
ERROR 42883: could not identify a comparison function for type json
ERROR 42883: could not identify a comparison function for type json
ERROR 42883: could not identify a comparison function for type json
ERROR 42883: could not identify a comparison function for type json
ERROR 42883: could not identify a comparison function for type json
ERROR 42883: could not identify a comparison function for type json[]
ERROR 42883: could not identify a comparison function for type json
ERROR 42883: could not identify an equality operator for type json
ERROR 42883: could not identify an equality operator for type json
