# Functions that return sets, in the select list and other clauses: with groups, aggregates, windows, DISTINCT, ORDER BY.
create table p (id int primary key, k text, tags text[]);
insert into p values (1, 'x', '{a,b,c}'), (2, 'y', '{b}'), (3, 'x', '{a,c}'), (4, 'z', '{}'), (5, null, null), (6, 'y', '{b,d,null}');
create table jj (id int primary key, j jsonb, body text);
insert into jj values (1, '{"a":1,"b":2}', 'the cat the dog'), (2, '{"b":[1,2]}', 'a cat'), (3, '{"a":null,"c":{}}', 'dog');
create table a (id int primary key, k int, v int);
insert into a values (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 3, 40), (5, 3, 50), (6, 3, 60);
----
CREATE TABLE
INSERT 0 6
CREATE TABLE
INSERT 0 3
CREATE TABLE
INSERT 0 6

# In GROUP BY they run below the aggregation.
select unnest(tags) t, count(*) from p group by 1 order by 1;
select unnest(tags) t, count(*) from p group by t order by t desc;
select unnest(tags), count(*) from p group by unnest(tags) order by 2, 1;
select count(*) from p group by unnest(tags) order by unnest(tags);
select unnest(tags) || '!' t, count(*) from p group by 1 order by 1;
select unnest(tags) as id, count(*) from p group by id order by 2, 1;
select unnest(tags) t, count(*) c, min(id), array_agg(id order by id) from p group by t having count(*) > 1 order by t;
select regexp_split_to_table(body, ' ') w, count(*) from jj group by w order by 2 desc, 1;
select jsonb_object_keys(j) k, count(*) from jj group by k order by 2 desc, 1 limit 2;
select string_to_table('a,b', ',') s, count(*) from a group by s order by s;
select (jsonb_each(j)).key, count(*) from jj group by 1 order by 1;
select (jsonb_each(j)).*, count(*) from jj group by 1, 2 order by 1, 2;
select jsonb_each(j), count(*) from jj group by 1 order by 1;
select k, generate_series(1, 2), count(*) from a group by k, generate_series(1, 2) order by 1, 2;
select k, count(*) from a group by k, generate_series(1, 2) order by k;
select generate_series(1, 2) from p group by generate_series(1, 2), id order by 1;
select unnest(tags) from p where id < 4 group by unnest(tags), unnest(tags) || 'x' order by 1;
select unnest(tags), unnest(tags) || 'x' from p group by unnest(tags) order by 1;
select generate_series(1, 2) + 1 g, count(*) from a group by generate_series(1, 2) order by 1;
select count(*) from a group by generate_series(1, 2) having count(*) > 3;
select generate_series(1, 3) g, count(*) from a group by g order by count(*), generate_series(1, 3) desc;
select k + generate_series(1, 2), count(*) from a group by 1 order by 1, 2;
select t.t, c from (select unnest(tags) t, count(*) c from p group by 1) t where t > 'a' order by 1;
with s as (select unnest(tags) t, count(*) c from p group by 1) select s.t, s2.c from s join s s2 using (t) order by 1;
----
t:text|count:int8
a|2
b|3
c|2
d|1
NULL|1
t:text|count:int8
NULL|1
d|1
c|2
b|3
a|2
unnest:text|count:int8
d|1
NULL|1
a|2
c|2
b|3
count:int8
2
3
2
1
1
t:text|count:int8
a!|2
b!|3
c!|2
d!|1
NULL|1
id:text|count:int8
a|1
a|1
b|1
b|1
b|1
c|1
c|1
d|1
NULL|1
t:text|c:int8|min:int4|array_agg:_int4
a|2|1|{1,3}
b|3|1|{1,2,6}
c|2|1|{1,3}
w:text|count:int8
cat|2
dog|2
the|2
a|1
k:text|count:int8
a|2
b|2
s:text|count:int8
a|6
b|6
key:text|count:int8
a|2
b|2
c|1
key:text|value:jsonb|count:int8
a|null|1
a|1|1
b|2|1
b|[1, 2]|1
c|{}|1
jsonb_each:record|count:int8
(a,null)|1
(a,1)|1
(b,2)|1
(b,"[1, 2]")|1
(c,{})|1
k:int4|generate_series:int4|count:int8
1|1|2
1|2|2
2|1|1
2|2|1
3|1|3
3|2|3
k:int4|count:int8
1|2
1|2
2|1
2|1
3|3
3|3
generate_series:int4
1
1
1
1
1
1
2
2
2
2
2
2
unnest:text
a
b
c
unnest:text|?column?:text
a|ax
b|bx
c|cx
d|dx
NULL|NULL
g:int4|count:int8
2|6
3|6
count:int8
6
6
g:int4|count:int8
3|6
2|6
1|6
?column?:int4|count:int8
2|2
3|3
4|4
5|3
t:text|c:int8
b|3
c|2
d|1
t:text|c:int8
a|2
b|3
c|2
d|1

# Several keys that are sets run side by side. What is no key runs over the groups.
select unnest(array[1, 2]), unnest(array[1, 2, 3]), count(*) from a group by 1, 2 order by 2;
select unnest(array[1, 2]), unnest(array[1, 2]), count(*) from a group by 1, 2 order by 1;
select unnest(array[1, 2]) u, unnest(array[1, 2, 3]), count(*) from a group by 1 order by 2, 1;
select unnest(tags), tags, count(*) from p group by tags, unnest(tags) order by 1, 2;
select unnest(tags), tags, count(*) from p group by tags order by 1, 2;
select unnest(tags) || '!', unnest(tags), tags, count(*) from p where id in (2, 3) group by tags, unnest(tags) || '!' order by 1, 2, 3;
select unnest(tags) t, count(*), generate_series(1, count(*)) from p group by t order by 1, 3;
select k + generate_series(1, 2), count(*) from a group by k order by 1, 2;
----
unnest:int4|unnest:int4|count:int8
1|1|6
2|2|6
NULL|3|6
unnest:int4|unnest:int4|count:int8
1|1|6
2|2|6
u:int4|unnest:int4|count:int8
1|1|6
2|1|6
1|2|6
2|2|6
1|3|6
2|3|6
unnest:text|tags:_text|count:int8
a|{a,b,c}|1
a|{a,c}|1
b|{a,b,c}|1
b|{b}|1
b|{b,d,NULL}|1
c|{a,b,c}|1
c|{a,c}|1
d|{b,d,NULL}|1
NULL|{b,d,NULL}|1
unnest:text|tags:_text|count:int8
a|{a,b,c}|1
a|{a,c}|1
b|{a,b,c}|1
b|{b}|1
b|{b,d,NULL}|1
c|{a,b,c}|1
c|{a,c}|1
d|{b,d,NULL}|1
NULL|{b,d,NULL}|1
?column?:text|unnest:text|tags:_text|count:int8
a!|a|{a,c}|1
a!|c|{a,c}|1
b!|b|{b}|1
c!|a|{a,c}|1
c!|c|{a,c}|1
t:text|count:int8|generate_series:int8
a|2|1
a|2|2
b|3|1
b|3|2
b|3|3
c|2|1
c|2|2
d|1|1
NULL|1|1
?column?:int4|count:int8
2|2
3|1
3|2
4|1
4|3
5|3

# Over the output of an aggregation.
select unnest(array_agg(k order by k)) from a;
select json_array_elements(json_agg(k order by id)) from a;
select jsonb_array_elements_text(jsonb_agg(k order by id)) || 'x' from a;
select (jsonb_each(jsonb_agg(j order by id) -> 0)).key from jj order by 1;
select k, unnest(array[1, 2]) from a group by k order by 1, 2;
select k, generate_series(1, count(*)) from a group by k having count(*) > 0 order by 1, 2;
select k, generate_series(1, count(*)) g, count(*) from a group by k order by g desc, k limit 3;
select k, unnest(array_agg(v)), count(*) from a group by k order by 1, 2 offset 1 limit 3;
select k, unnest(array[1, 2, 3]), generate_series(1, count(*)) from a group by k order by 1, 2, 3;
select k, string_agg(v::text, ',' order by v), unnest(array['p', 'q']) from a group by k order by 1, 3;
select k, generate_series(1, id), v from a where id < 3 group by id order by 1, 2, 3;
select max(v), generate_series(1, 2) from a;
select max(v), generate_series(1, 2) from a having false;
select generate_series(1, 2) having true;
select generate_series(1, 2) having false;
select unnest(array_agg(id)) from a where false;
select generate_series(1, count(*)) from a where false;
select generate_series(1, count(*)), count(*) from a;
select k from a group by k order by generate_series(1, 2), k;
select k from a group by k order by generate_series(1, count(*)), k;
select k, array(select unnest(array_agg(a.v order by a.v))) from a group by k order by 1;
select k, (select max(u) from (select unnest(array_agg(a.v)) u) s) from a group by k order by 1;
select id, array(select unnest(array_agg(x)) from unnest(tags) x) from p order by 1;
select k, unnest(array[(select max(v) from a i where i.k = o.k), count(*)]) from a o group by k order by 1, 2;
----
unnest:int4
1
1
2
3
3
3
json_array_elements:json
1
1
2
3
3
3
?column?:text
1x
1x
2x
3x
3x
3x
key:text
a
b
k:int4|unnest:int4
1|1
1|2
2|1
2|2
3|1
3|2
k:int4|generate_series:int8
1|1
1|2
2|1
3|1
3|2
3|3
k:int4|g:int8|count:int8
3|3|3
1|2|2
3|2|3
k:int4|unnest:int4|count:int8
1|20|2
2|30|1
3|40|3
k:int4|unnest:int4|generate_series:int8
1|1|1
1|2|2
1|3|NULL
2|1|1
2|2|NULL
2|3|NULL
3|1|1
3|2|2
3|3|3
k:int4|string_agg:text|unnest:text
1|10,20|p
1|10,20|q
2|30|p
2|30|q
3|40,50,60|p
3|40,50,60|q
k:int4|generate_series:int4|v:int4
1|1|10
1|1|20
1|2|20
max:int4|generate_series:int4
60|1
60|2
max:int4|generate_series:int4
generate_series:int4
1
2
generate_series:int4
unnest:int4
generate_series:int8
generate_series:int8|count:int8
1|6
2|6
3|6
4|6
5|6
6|6
k:int4
1
2
3
1
2
3
k:int4
1
2
3
1
3
3
k:int4|array:_int4
1|{10,20}
2|{30}
3|{40,50,60}
k:int4|max:int4
1|20
2|30
3|60
id:int4|array:_text
1|{a,b,c}
2|{b}
3|{a,c}
4|{}
5|{}
6|{b,d,NULL}
k:int4|unnest:int8
1|2
1|20
2|1
2|30
3|3
3|60

# With DISTINCT, ORDER BY and set operations.
select distinct unnest(array_agg(v / 20)) from a order by 1;
select distinct count(*), unnest(array[1, 1, 2]) from a group by k order by 1, 2;
select distinct on (k) k, unnest(array_agg(v order by v desc)) from a group by k order by k;
select distinct on (k) k, unnest(array[v, v + 1]) from a order by k, v;
select distinct on (k) k, unnest(array[v, v + 1]) from a order by k, v limit 3 offset 1;
select distinct on (k) k, unnest(array[v, v + 1]) from a order by k, 2 desc;
select distinct on (k) k, v, count(*) over (), unnest(array[k, 0]) from a order by k, v desc;
select distinct on (unnest(tags)) unnest(tags), id from p order by unnest(tags), id desc;
select id from a where id < 3 order by generate_series(1, 2) desc, id;
select id, unnest(tags) from p order by unnest(tags) desc nulls last, id;
select unnest(tags) t, count(*) from p group by t union all select 'z', 9 order by 1, 2;
select distinct k from a order by generate_series(1, 2);
select generate_series(1, 2) union select generate_series(2, 3) order by generate_series(1, 2);
----
unnest:int4
0
1
2
3
count:int8|unnest:int4
1|1
1|2
2|1
2|2
3|1
3|2
k:int4|unnest:int4
1|20
1|10
2|30
3|60
3|50
3|40
k:int4|unnest:int4
1|10
1|11
2|30
2|31
3|40
3|41
k:int4|unnest:int4
1|11
2|30
2|31
k:int4|unnest:int4
1|21
2|31
3|61
k:int4|v:int4|count:int8|unnest:int4
1|20|6|1
1|20|6|0
2|30|6|2
2|30|6|0
3|60|6|3
3|60|6|0
unnest:text|id:int4
a|3
b|6
c|3
d|6
NULL|6
id:int4
1
2
1
2
id:int4|unnest:text
6|d
1|c
3|c
1|b
2|b
6|b
1|a
3|a
6|NULL
t:text|count:int8
a|2
b|3
c|2
d|1
z|9
NULL|1
ERROR 42P10: for SELECT DISTINCT, ORDER BY expressions must appear in select list [at 35]
ERROR 0A000: invalid UNION/INTERSECT/EXCEPT ORDER BY clause [at 74]
DETAIL: Only result column names can be used, not expressions or functions.
HINT: Add the expression/function to every SELECT, or move the UNION into a FROM clause.

# With windows: they run over these, but for those in the keys of a window, which run below.
select k, unnest(array[1, 2]) u, row_number() over (order by k) from a group by k order by k, u;
select k, generate_series(1, row_number() over (order by k)) from a group by k order by 1, 2;
select k, generate_series(1, (sum(count(*)) over (order by k))::int) from a group by k order by 1, 2;
select k, lag(k) over (order by k), unnest(array[k, k]) from a group by k order by 1;
select distinct unnest(tags) t, count(*) over () from p order by 1;
select count(*) over (partition by unnest(tags)), unnest(tags) from p order by 2, 1;
select count(*) over (partition by unnest(tags) || '1'), unnest(tags), id from p where id in (2, 3) order by 3, 2, 1;
select row_number() over (order by unnest(tags), id), id from p order by 1;
select row_number() over w, id from p window w as (order by unnest(tags), id) order by 1;
select id, rank() over (order by generate_series(1, 2)) from a order by 1, 2;
select k, rank() over (order by generate_series(1, count(*))), generate_series(5, 6) from a group by k order by 1, 2, 3;
select unnest(tags) t, sum(count(*)) over (order by unnest(tags)) from p group by t order by 1;
----
k:int4|u:int4|row_number:int8
1|1|1
1|2|1
2|1|2
2|2|2
3|1|3
3|2|3
k:int4|generate_series:int8
1|1
2|1
2|2
3|1
3|2
3|3
k:int4|generate_series:int4
1|1
1|2
2|1
2|2
2|3
3|1
3|2
3|3
3|4
3|5
3|6
k:int4|lag:int4|unnest:int4
1|NULL|1
1|NULL|1
2|1|2
2|1|2
3|2|3
3|2|3
t:text|count:int8
a|6
b|6
c|6
d|6
NULL|6
count:int8|unnest:text
2|a
2|a
3|b
3|b
3|b
2|c
2|c
1|d
1|NULL
count:int8|unnest:text|id:int4
1|b|2
1|a|3
1|a|3
1|c|3
1|c|3
row_number:int8|id:int4
1|1
2|3
3|1
4|2
5|6
6|1
7|3
8|6
9|6
row_number:int8|id:int4
1|1
2|3
3|1
4|2
5|6
6|1
7|3
8|6
9|6
id:int4|rank:int8
1|1
1|7
2|1
2|7
3|1
3|7
4|1
4|7
5|1
5|7
6|1
6|7
k:int4|rank:int8|generate_series:int4
1|1|5
1|1|6
1|4|5
1|4|6
2|1|5
2|1|6
3|1|5
3|1|6
3|4|5
3|4|6
3|6|5
3|6|6
t:text|sum:numeric
a|2
b|5
c|7
d|8
NULL|9

# In arguments of others: each depth runs over the one below.
select unnest(array[generate_series(1, 2), 7]);
select unnest(array[generate_series(1, 2), 7]), generate_series(1, 3);
select generate_series(1, generate_series(1, 3)), generate_series(5, 6);
select generate_series(1, generate_series(1, 3)) g, count(*) from a group by g order by 1;
select generate_series(1, generate_series(1, 3)) g, generate_series(1, 3) h, count(*) from a group by g order by 1, 2;
select generate_series(1, 3) h, count(*) from a group by generate_series(1, generate_series(1, 2)) order by 1, 2;
select unnest(array_agg(k)), generate_series(1, generate_series(1, 2)) from a group by v / 30 order by 1, 2;
select generate_series(1, generate_series(1, count(*))) from a group by k order by 1;
----
unnest:int4
1
7
2
7
unnest:int4|generate_series:int4
1|1
7|1
2|2
7|2
NULL|3
7|3
generate_series:int4|generate_series:int4
1|5
1|6
2|6
1|NULL
2|NULL
3|NULL
g:int4|count:int8
1|18
2|12
3|6
g:int4|h:int4|count:int8
1|1|18
1|2|18
1|3|18
2|1|12
2|2|12
2|3|12
3|1|6
3|2|6
3|3|6
h:int4|count:int8
1|6
1|12
2|6
2|12
3|6
3|12
unnest:int4|generate_series:int4
1|1
1|1
1|2
2|1
3|1
3|1
3|2
NULL|1
NULL|2
generate_series:int8
1
1
1
1
1
1
2
2
2
3

# Where they may not stand.
select count(unnest(tags)) from p;
select count(unnest(tags)), unnest(tags) from p group by unnest(tags);
select count(id) filter (where unnest(tags) = 'a') from p;
select array_agg(id order by unnest(tags)) from p;
select percentile_cont(0.5) within group (order by generate_series(1, 2)) from a;
select sum(generate_series(1, 3)) over () from a;
select lag(unnest(tags)) over () from p;
select count(*) filter (where generate_series(1, 2) > 1) over () from a;
select sum(v) over (order by id rows generate_series(1, 2) preceding) from a;
select sum(v) over (order by id range between generate_series(1, 2) preceding and current row) from a;
select id from p where unnest(tags) = 'a';
select k from a group by k having generate_series(1, 2) > 1;
select * from a join p on generate_series(1, 2) = p.id;
select 1 limit generate_series(1, 2);
values (generate_series(1, 2));
select (values (generate_series(1, 2)));
select * from generate_series(1, generate_series(1, 2));
select (select 1 from generate_series(1, generate_series(1, 2)));
update a set v = generate_series(1, 2);
insert into a values (1000, 1, 1) returning generate_series(1, 2);
select id, unnest(tags) from p for update;
select id from p order by unnest(tags) for share;
select generate_series(1, 2) between 1 and 1;
select generate_series(1, 2) not between 1 and 1;
select generate_series(1, 2) = 1 and true;
select not generate_series(1, 2) = 1;
----
ERROR 0A000: aggregate function calls cannot contain set-returning function calls [at 14]
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
ERROR 0A000: aggregate function calls cannot contain set-returning function calls [at 14]
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
ERROR 0A000: set-returning functions are not allowed in FILTER [at 32]
ERROR 0A000: aggregate function calls cannot contain set-returning function calls [at 30]
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
ERROR 0A000: aggregate function calls cannot contain set-returning function calls [at 52]
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
ERROR 0A000: window function calls cannot contain set-returning function calls [at 12]
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
ERROR 0A000: window function calls cannot contain set-returning function calls [at 12]
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
ERROR 0A000: set-returning functions are not allowed in FILTER [at 31]
ERROR 0A000: set-returning functions are not allowed in window definitions [at 38]
ERROR 0A000: set-returning functions are not allowed in window definitions [at 47]
ERROR 0A000: set-returning functions are not allowed in WHERE [at 24]
ERROR 0A000: set-returning functions are not allowed in HAVING [at 35]
ERROR 0A000: set-returning functions are not allowed in JOIN conditions [at 27]
ERROR 0A000: set-returning functions are not allowed in LIMIT [at 16]
ERROR 0A000: set-returning functions are not allowed in VALUES [at 9]
ERROR 0A000: set-returning functions are not allowed in VALUES [at 17]
ERROR 0A000: set-returning functions must appear at top level of FROM [at 34]
ERROR 0A000: set-returning functions must appear at top level of FROM [at 42]
ERROR 0A000: set-returning functions are not allowed in UPDATE [at 18]
ERROR 0A000: set-returning functions are not allowed in RETURNING [at 45]
ERROR 0A000: FOR UPDATE is not allowed with set-returning functions in the target list
ERROR 0A000: FOR SHARE is not allowed with set-returning functions in the target list
ERROR 42804: argument of AND must not return a set [at 8]
ERROR 42804: argument of OR must not return a set [at 8]
ERROR 42804: argument of AND must not return a set [at 8]
ERROR 42804: argument of NOT must not return a set [at 12]

select case when id > 1 then generate_series(1, 2) else 5 end from a;
select case generate_series(1, 2) when 1 then 2 end;
select case when generate_series(1, 2) = 1 then 2 end;
select case when true then 1 else unnest(array[1]) + generate_series(1, 2) end;
select unnest(array[case when true then generate_series(1, 2) end]);
select coalesce(unnest(tags), 'x') from p;
select coalesce(1, (select 2), generate_series(1, 2));
select coalesce(null, (select unnest(array[1])));
select generate_series(1, case when id > 2 then 2 else 1 end) from a where id in (2, 3);
select generate_series(1, coalesce(null, 2));
select greatest(generate_series(1, 2), 2);
select nullif(generate_series(1, 2), 2);
select row(generate_series(1, 2), 'a');
select generate_series(1, 2) in (1, 3);
----
ERROR 0A000: set-returning functions are not allowed in CASE [at 30]
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
ERROR 0A000: set-returning functions are not allowed in CASE [at 13]
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
ERROR 42804: argument of CASE/WHEN must not return a set [at 18]
ERROR 0A000: set-returning functions are not allowed in CASE [at 54]
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
ERROR 0A000: set-returning functions are not allowed in CASE [at 41]
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
ERROR 0A000: set-returning functions are not allowed in COALESCE [at 17]
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
ERROR 0A000: set-returning functions are not allowed in COALESCE [at 32]
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
coalesce:int4
1
generate_series:int4
1
1
2
generate_series:int4
1
2
greatest:int4
2
2
nullif:int4
1
NULL
row:record
(1,a)
(2,a)
?column?:bool
t
f

# Columns that are not grouped, also in their arguments. Aggregates and windows are no keys.
select generate_series(1, v) from a group by k;
select k, generate_series(1, v), id from a group by k;
select k, id, generate_series(1, v) from a group by k;
select unnest(tags), unnest(tags) || '!' t, count(*) from p group by 2;
select unnest(tags), id from p group by unnest(tags);
select k from a group by k order by generate_series(1, v);
select unnest(array_agg(k)) x from a group by x;
select unnest(array[row_number() over ()]) x from a group by 1;
select unnest(array_agg(1)) x from a group by unnest(array_agg(1));
select generate_series(1, 2) g, count(*) from a group by g + 1;
----
ERROR 42803: column "a.v" must appear in the GROUP BY clause or be used in an aggregate function [at 27]
ERROR 42803: column "a.v" must appear in the GROUP BY clause or be used in an aggregate function [at 30]
ERROR 42803: column "a.id" must appear in the GROUP BY clause or be used in an aggregate function [at 11]
ERROR 42803: column "p.tags" must appear in the GROUP BY clause or be used in an aggregate function [at 15]
ERROR 42803: column "p.id" must appear in the GROUP BY clause or be used in an aggregate function [at 22]
ERROR 42803: column "a.v" must appear in the GROUP BY clause or be used in an aggregate function [at 56]
ERROR 42803: aggregate functions are not allowed in GROUP BY [at 15]
ERROR 42P20: window functions are not allowed in GROUP BY [at 21]
ERROR 42803: aggregate functions are not allowed in GROUP BY [at 54]
ERROR 42703: column "g" does not exist [at 58]

# Calls that are volatile are one only if they are written once.
select bool_or(x <> y) from (select unnest(array[random(), random()]) x, unnest(array[random(), random()]) y) s;
insert into a select generate_series(100, 100 + count(*)), 1, 1 from a;
select unnest(array_agg(id order by id)) from a where id > 10;
\params {1,2,1}
select unnest($1::int[]) u, count(*), generate_series(1, $1[2]) from a group by u order by 1, 3;
create view tag_counts as select unnest(tags) tag, count(*) from p group by tag;
select * from tag_counts where count > 1 order by tag;
select tag, k from tag_counts join p on tag = any (tags) order by 1, 2 nulls last;
----
bool_or:bool
t
INSERT 0 7
unnest:int4
100
101
102
103
104
105
106
params _int4
u:int4|count:int8|generate_series:int4
1|26|1
1|26|2
2|13|1
2|13|2
CREATE VIEW
tag:text|count:int8
a|2
b|3
c|2
tag:text|k:text
a|x
a|x
b|x
b|y
b|y
c|x
c|x
d|y

# In sub-queries, lateral items, recursive queries, and with their rows as values.
select id, (select string_agg(t || c, ',' order by t) from (select unnest(p.tags) t, count(*) c group by 1) s) from p order by 1;
select p.id, l.* from p, lateral (select unnest(p.tags) t, count(*) from a group by 1) l order by 1, 2;
with recursive r as (select 1 n union all select n + unnest(array[1, 2]) from r where n < 3) select n from r order by n;
select id from p where 'a' in (select unnest(tags) group by 1) order by 1;
select id from p where exists (select generate_series(2, count(*)) from a where a.k = p.id) order by 1;
select k, (jsonb_each_text(jsonb_object_agg(id, v))).* from a where id < 10 group by k order by 1, 2;
select generate_series(1, 10000000) g, count(*) over () from a limit 2;
select unnest(tags) from p group by 1 limit 0;
select distinct on (t) unnest(tags) t, id from p order by t, id;
select k, unnest(array[k, 0]) u, rank() over (order by unnest(array[k, 0])), count(*) from a where id < 10 group by k, unnest(array[k, 0]) order by 1, 2;
select k, rank() over (order by unnest(array[k, 0])), generate_series(1, 2) from a where id < 10 group by k order by 1, 2, 3;
select t, count(*), unnest(array_agg(id order by id)) from (select unnest(tags) t, id from p) s group by t order by 1, 3;
select json_object_keys(json_object_agg(k, v)) from a where id < 4;
select (select unnest(array_agg(a.id order by a.id)) limit 1), generate_series(1, 2) from a;
create table made as select unnest(tags) tag, count(*) from p group by 1;
select * from made order by 1;
select nullif(unnest(tags), 'a') t, count(*) from p group by t order by t;
select generate_series(1, 3) in (select k from a), count(*) from a group by 1 order by 1;
----
id:int4|string_agg:text
1|a1,b1,c1
2|b1
3|a1,c1
4|NULL
5|NULL
6|b1,d1
id:int4|t:text|count:int8
1|a|13
1|b|13
1|c|13
2|b|13
3|a|13
3|c|13
6|b|13
6|d|13
6|NULL|13
n:int4
1
2
3
3
4
id:int4
1
3
id:int4
1
3
k:int4|key:text|value:text
1|1|10
1|2|20
2|3|30
3|4|40
3|5|50
3|6|60
g:int4|count:int8
1|13
2|13
unnest:text
t:text|id:int4
a|1
b|1
c|1
d|6
NULL|6
k:int4|u:int4|rank:int8|count:int8
1|0|1|2
1|1|4|2
2|0|1|1
2|2|5|1
3|0|1|3
3|3|6|3
k:int4|rank:int8|generate_series:int4
1|1|1
1|1|2
1|4|1
1|4|2
2|1|1
2|1|2
2|5|1
2|5|2
3|1|1
3|1|2
3|6|1
3|6|2
t:text|count:int8|unnest:int4
a|2|1
a|2|3
b|3|1
b|3|2
b|3|6
c|2|1
c|2|3
d|1|6
NULL|1|6
json_object_keys:text
1
1
2
unnest:int4|generate_series:int4
1|1
1|2
tag:text|count:int8
a|2
b|3
c|2
d|1
NULL|1
t:text|count:int8
b|3
c|2
d|1
NULL|3
ERROR 42804: row comparison operator must not return a set [at 30]
