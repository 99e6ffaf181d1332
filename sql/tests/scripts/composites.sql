# Rows of functions as values, and their fields.
select (information_schema._pg_expandarray(array['a', 'b'])).n, information_schema._pg_expandarray(array['a', 'b']);

select (k).x, (k).n, k from (select information_schema._pg_expandarray(array[7, 8]) k) s;

select (s.k).x + 1 from (select information_schema._pg_expandarray('{5,6}'::int8[]) k) s where (k).n = 2;

select (information_schema._pg_expandarray(array[1, 2])).*;

select * from information_schema._pg_expandarray(array['x', 'y']);

select x, n from information_schema._pg_expandarray('1 2'::int2vector) as k (x, n) order by n desc;

select (json_each('{"a": 1, "b": [2]}')).key, (json_each('{"a": 1, "b": [2]}')).value;

select (jsonb_each('{"a": 1}')).*;

select (row(1, 'a'::text)).f2, (row(1, 2)).*;

create table pt (a int, b text);
insert into pt values (1, 'x');
select (pt).a, (pt).b, (p).* from pt, lateral (select pt as p) q;

select (pt).* from pt;

select pg_typeof((information_schema._pg_expandarray(array[1::int8])).x);

select (1).x;

select (row(1, 2)).f3;

select (1).*;

select (information_schema._pg_expandarray(array[1])).z;

select information_schema._pg_expandarray(1);

select information_schema.nothing(1);
