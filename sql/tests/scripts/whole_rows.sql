# Rows of tables as values: t, t.*, (row).*.
create table em (id int primary key, dept text, sal int);
insert into em values (1,'a',10),(2,'a',20),(3,'b',30),(4,'b',40),(5,'c',null);
----
CREATE TABLE
INSERT 0 5

# The row of a function in FROM that returns a scalar is that scalar.
select jsonb_agg(e) from jsonb_array_elements('[1,2]') e;
select t from jsonb_array_elements_text('["b"]') t;
select e, e.*, e->>'a' from jsonb_array_elements('[{"a":1}]') e;
select e::int + 1 from json_array_elements_text('[1,2]') e;
select g, count(g.*) from generate_series(1,2) g group by g order by g;
select jsonb_agg(e) from jsonb_array_elements('[1,2]') with ordinality e;
select e from jsonb_array_elements('[1,2]') with ordinality e(v, n);
select e from rows from (jsonb_array_elements('[1,2]'), generate_series(1,3)) e;
select (select e) from jsonb_array_elements('[1,2]') e;
select e from jsonb_each('{"a":1}') e;
select u from unnest(array[1,2]) u(x);
select u from upper('a') u(x);
----
jsonb_agg:jsonb
[1, 2]
t:text
b
e:jsonb|value:jsonb|?column?:text
{"a": 1}|{"a": 1}|1
?column?:int4
2
3
g:int4|count:int8
1|1
2|1
jsonb_agg:jsonb
[{"value": 1, "ordinality": 1}, {"value": 2, "ordinality": 2}]
e:record
(1,1)
(2,2)
e:record
(1,1)
(2,2)
(,3)
e:jsonb
1
2
e:record
(a,1)
u:int4
1
2
u:text
A

# A row as one value.
select count(em.*), json_agg(em.*) from em where id < 3;
select row_to_json(e.*), to_jsonb(e.*), row(e.*, 1), coalesce(e.*) from em e where id = 1;
select e.*::text, e.* is not null, e.* = e.* from em e where e.* is not null order by id;
select e.*, 1 = 1 from em e where id = 1;
select public.em.*::text from public.em where id = 1;
select (select e) from em e where id = 1;
select (select row_to_json(e)) from em e where id = 1;
select (select e.*::text) from em e where id = 1;
select count(z.*) from em;
select z.*::text from em;
select count((e).*) from em e;
----
count:int8|json_agg:json
2|[{"id":1,"dept":"a","sal":10}, 
 {"id":2,"dept":"a","sal":20}]
row_to_json:json|to_jsonb:jsonb|row:record|coalesce:record
{"id":1,"dept":"a","sal":10}|{"id": 1, "sal": 10, "dept": "a"}|(1,a,10,1)|(1,a,10)
e:text|?column?:bool|?column?:bool
(1,a,10)|t|t
(2,a,20)|t|t
(3,b,30)|t|t
(4,b,40)|t|t
id:int4|dept:text|sal:int4|?column?:bool
1|a|10|t
em:text
(1,a,10)
e:record
(1,a,10)
row_to_json:json
{"id":1,"dept":"a","sal":10}
e:text
(1,a,10)
ERROR 42P01: missing FROM-clause entry for table "z" [at 14]
ERROR 42P01: missing FROM-clause entry for table "z" [at 8]
ERROR 0A000: row expansion via "*" is not supported here [at 15]

# Rows that are told apart.
select count(distinct em.*), count(distinct em) from em where id < 3;
select count(*) from em e join em f on e.* = f.*;
select distinct (dept, sal is null) from em order by 1;
select e, count(*) from em e group by e order by e limit 2;
select row(1, null::int) union select row(1, null::int) union select row(null::int, 1) order by 1;
----
count:int8|count:int8
2|2
count:int8
5
row:record
(a,f)
(b,f)
(c,t)
e:record|count:int8
(1,a,10)|1
(2,a,20)|1
row:record
(1,)
(,1)

# A row as its columns.
select (e.id, e.*), (e.*) from em e where id = 1;
select (e).* from em e where id = 1;
select (q).*, (q.*) is null from (select 1 a, null b) q;
select (e.*, 1) = (1, 'a', 10, 1) from em e where id = 1;
select row((e).*, 2) from em e where id = 1;
select (select q.dept from (select e.*) q) from em e where id = 2;
select f.* from em e, lateral (select e.*, 1 x) f where e.id = 1;
select exists (select e.*) from em e where id = 1;
select (select e.*) from em e;
select array(select e.*) from em e;
select f.* from em e, lateral (select zz.*) f;
select (e.dept).* from em e;
create view ev as select (e).* from em e;
create view ev as select f.* from em e, lateral (select e.*, 1 x) f where e.id = 1;
select * from ev;
----
row:record|id:int4|dept:text|sal:int4
(1,1,a,10)|1|a|10
id:int4|dept:text|sal:int4
1|a|10
a:int4|b:text|?column?:bool
1|NULL|f
?column?:bool
t
row:record
(1,a,10,2)
dept:text
a
id:int4|dept:text|sal:int4|x:int4
1|a|10|1
exists:bool
t
ERROR 42601: subquery must return only one column [at 8]
ERROR 42601: subquery must return only one column [at 8]
ERROR 42P01: missing FROM-clause entry for table "zz" [at 39]
ERROR 42809: type text is not composite
ERROR 0A000: this form of * in a view is not supported yet [at 27]
CREATE VIEW
id:int4|dept:text|sal:int4|x:int4
1|a|10|1

# Where an outer join has no row, it is NULL.
select count(b.*), count(b), count(*) from em a left join em b on b.id = a.id + 1;
select row_to_json(b) from em a left join em b on b.id = a.id + 3 where a.id < 4 order by a.id;
select row_to_json(s) from em a left join lateral (select a.sal x where a.id = 1) s on true order by a.id;
select (b).dept, b.* is null from em a full join em b on b.id = a.id + 4 where a.id < 3 order by a.id;
----
count:int8|count:int8|count:int8
4|4|5
row_to_json:json
{"id":4,"dept":"b","sal":40}
{"id":5,"dept":"c","sal":null}
NULL
row_to_json:json
{"x":10}
NULL
NULL
NULL
NULL
dept:text|?column?:bool
c|f
NULL|t
