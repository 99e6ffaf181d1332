# Elements and slices of arrays that UPDATE and INSERT assign.
create table t (id int primary key, a int[], b varchar(3)[], n int, j jsonb);
insert into t (id, a, b) values (1, '{1,2,3}', '{x,y}'), (2, null, null), (3, '{{1,2},{3,4}}', '{}');
update t set a[2] = 20, b[4] = 'z' where id = 1;
select * from t where id = 1;
update t set a[0] = n where id = 1;
update t set a[2:3] = '{7,8,9}', a[1] = a[2] where id = 1;
update t set a[3] = 5, b[2:3] = array['p', 'q'] where id = 2;
update t set a[1][2] = 9, b[1] = null where id = 3;
update t set (a[2][1], n) = (select 10, 11) where id = 3;
select id, a, b, n from t order by id;
----
CREATE TABLE
INSERT 0 3
UPDATE 1
id:int4|a:_int4|b:_varchar|n:int4|j:jsonb
1|{1,20,3}|{x,y,NULL,z}|NULL|NULL
UPDATE 1
UPDATE 1
UPDATE 1
UPDATE 1
UPDATE 1
id:int4|a:_int4|b:_varchar|n:int4
1|[0:3]={NULL,20,7,8}|{x,y,NULL,z}|NULL
2|[3:3]={5}|[2:3]={p,q}|NULL
3|{{1,9},{10,4}}|{NULL}|11

insert into t (id, a[2], a[1]) values (4, 2, 1), (5, 4, null) returning a;
insert into t (id, a[1:2], b[1]) select 6, array[5, 6, 7], 'one' returning a, b;
insert into t (id, a) values (6, null) on conflict (id) do update set a[3] = excluded.id, a[2] = t.a[1] returning a;
update t set a[:2] = '{1,1}' where id = 6 returning a;
update t set a[2:2] = null where id = 6 returning a;
----
a:_int4
{1,2}
{NULL,4}
INSERT 0 2
a:_int4|b:_varchar
{5,6}|{one}
INSERT 0 1
a:_int4
{5,5,6}
INSERT 0 1
a:_int4
{1,1,6}
UPDATE 1
a:_int4
{1,1,6}
UPDATE 1

# What assignments refuse.
update t set a[null] = 1 where id = 1;
update t set a[1][1] = 1 where id = 1;
update t set a[3][1] = 1 where id = 3;
update t set a[1:3] = '{1}' where id = 1;
update t set a[:2] = '{1,2}' where id = 7;
insert into t (id, a[:2]) values (8, '{1,2}');
update t set a[1] = 'x' where id = 1;
update t set a[1] = true where id = 1;
update t set a[1:2] = 1 where id = 1;
update t set b[1] = 'long' where id = 1;
update t set n[1] = 1 where id = 1;
update t set a[1] = default where id = 1;
update t set a[1] = 1, a = '{}' where id = 1;
insert into t (id, a[1], a) values (8, 1, '{}');
update t set nope[1] = 1;
update t set a['x'] = 1;
update t set j['a'] = '1' where id = 1;
----
ERROR 22004: array subscript in assignment must not be null
ERROR 2202E: wrong number of array subscripts
ERROR 2202E: array subscript out of range
ERROR 2202E: source array too small
UPDATE 0
ERROR 2202E: array slice subscript must provide both boundaries
DETAIL: When assigning to a slice of an empty array value, slice boundaries must be fully specified.
ERROR 22P02: invalid input syntax for type integer: "x" [at 21]
ERROR 42804: subscripted assignment to "a" requires type integer but expression is of type boolean [at 14]
HINT: You will need to rewrite or cast the expression.
ERROR 42804: subscripted assignment to "a" requires type integer[] but expression is of type integer [at 14]
HINT: You will need to rewrite or cast the expression.
ERROR 22001: value too long for type character varying(3)
ERROR 42804: cannot subscript type integer because it does not support subscripting
ERROR 0A000: cannot set an array element to DEFAULT [at 14]
ERROR 42601: multiple assignments to same column "a"
ERROR 42701: column "a" specified more than once [at 26]
ERROR 42703: column "nope" of relation "t" does not exist [at 14]
ERROR 22P02: invalid input syntax for type integer: "x" [at 16]
ERROR 0A000: assignment to a subscript of jsonb is not supported yet [at 14]

# VALUES is a name of columns, too.
create table st (a int, "values" int[]);
insert into st values (1, '{7}');
update st set values[2] = 8;
insert into st (a, values[1]) values (2, 9);
update st set (a, values[3]) = (a, a) where a = 2 returning *;
select * from st * order by a;
drop table st;
----
CREATE TABLE
INSERT 0 1
UPDATE 1
INSERT 0 1
a:int4|values:_int4
2|{9,NULL,2}
UPDATE 1
a:int4|values:_int4
1|{7,8}
2|{9,NULL,2}
DROP TABLE
