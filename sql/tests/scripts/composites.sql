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
ERROR 42601: syntax error at or near ";" [at 59]

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
ERROR 42601: syntax error at or near ";" [at 34]

select (row(1, 'a'::text)).f2, (row(1, 2)).*;
----
ERROR 42601: syntax error at or near ";" [at 45]

create table pt (a int, b text);
insert into pt values (1, 'x');
select (pt).a, (pt).b, (p).* from pt, lateral (select pt as p) q;
----
CREATE TABLE
INSERT 0 1
ERROR 42601: syntax error at or near "from" [at 30]

select (pt).* from pt;
----
ERROR 42601: syntax error at or near "from" [at 15]

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
ERROR 42601: syntax error at or near ";" [at 13]

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
