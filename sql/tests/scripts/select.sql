# Queries over one table: names, order, limits, DISTINCT, VALUES.
create table t (id int primary key, a text, b int8, c float8);
----
CREATE TABLE

insert into t values (1, 'x', 10, 1.5), (2, 'y', null, -2), (3, null, 30, 'NaN'), (4, 'x', 40, null),
(5, 'z', 50, '-Infinity');
----
INSERT 0 5

select * from t order by id;
----
id:int4|a:text|b:int8|c:float8
1|x|10|1.5
2|y|NULL|-2
3|NULL|30|NaN
4|x|40|NULL
5|z|50|-Infinity

select t.* from t where id = 1;
----
id:int4|a:text|b:int8|c:float8
1|x|10|1.5

select t.id, a as name from t as t where t.id < 3 order by name desc;
----
id:int4|name:text
2|y
1|x

select x.id from t x where x.a = 'x' order by id desc;
----
id:int4
4
1

select t.id from t x;
----
ERROR 42P01: invalid reference to FROM-clause entry for table "t" [at 8]
HINT: Perhaps you meant to reference the table alias "x".

select y.id from t x;
----
ERROR 42P01: missing FROM-clause entry for table "y" [at 8]

select x.nope from t x;
----
ERROR 42703: column x.nope does not exist [at 8]

select nope from t;
----
ERROR 42703: column "nope" does not exist [at 8]

select id from nope;
----
ERROR 42P01: relation "nope" does not exist [at 16]

select id from public.t where id = 1;
----
id:int4
1

select id from other.t;
----
ERROR 42P01: relation "other.t" does not exist [at 16]

select "ID" from t;
----
ERROR 42703: column "ID" does not exist [at 8]

select ID, Id from T where iD = 1;
----
id:int4|id:int4
1|1

select * from "T";
----
ERROR 42P01: relation "T" does not exist [at 15]

select id, id from t where id = 1;
----
id:int4|id:int4
1|1

select a from t order by a, id;
----
a:text
x
x
y
z
NULL

select a from t order by a desc, id;
----
a:text
NULL
z
y
x
x

select a, id from t order by a nulls first, id;
----
a:text|id:int4
NULL|3
x|1
x|4
y|2
z|5

select a, id from t order by a desc nulls last, id desc;
----
a:text|id:int4
z|5
y|2
x|4
x|1
NULL|3

select id, c from t order by c, id;
----
id:int4|c:float8
5|-Infinity
2|-2
1|1.5
3|NaN
4|NULL

select id, c from t order by c desc, id;
----
id:int4|c:float8
4|NULL
3|NaN
1|1.5
2|-2
5|-Infinity

select id, b * 2 as dbl from t order by dbl desc;
----
id:int4|dbl:int8
2|NULL
5|100
4|80
3|60
1|20

select id from t order by 1 desc;
----
id:int4
5
4
3
2
1

select id from t order by 2;
----
ERROR 42P10: ORDER BY position 2 is not in select list [at 27]

select id from t order by 'x';
----
ERROR 42601: non-integer constant in ORDER BY [at 27]

select id from t order by b + 1;
----
id:int4
1
3
4
5
2

select id as a, a as x from t order by a;
----
a:int4|x:text
1|x
2|y
3|NULL
4|x
5|z

select id as k, b as k from t order by k;
----
ERROR 42702: ORDER BY "k" is ambiguous [at 40]

select distinct a from t order by a;
----
a:text
x
y
z
NULL

select distinct a from t order by id;
----
ERROR 42P10: for SELECT DISTINCT, ORDER BY expressions must appear in select list [at 35]

select distinct a, b is null as n from t order by a, n;
----
a:text|n:bool
x|f
y|t
z|f
NULL|f

select id from t order by id limit 2;
----
id:int4
1
2

select id from t order by id limit 2 offset 1;
----
id:int4
2
3

select id from t order by id offset 3;
----
id:int4
4
5

select id from t order by id limit 0;
----
id:int4

select id from t order by id limit null;
----
id:int4
1
2
3
4
5

select id from t order by id limit all;
----
id:int4
1
2
3
4
5

select id from t limit -1;
----
ERROR 2201W: LIMIT must not be negative

select id from t offset -1;
----
ERROR 2201X: OFFSET must not be negative

select id from t limit 'x';
----
ERROR 22P02: invalid input syntax for type bigint: "x" [at 24]

select id from t limit id;
----
ERROR 42P10: argument of LIMIT must not contain variables [at 24]

select id from t order by id limit '2';
----
id:int4
1
2

select id from t order by id fetch first 2 rows only;
----
id:int4
1
2

select id from t where b > 20 and (a = 'x' or a is null) order by id;
----
id:int4
3
4

select id from t where a;
----
ERROR 42804: argument of WHERE must be type boolean, not type text [at 24]

select id from t where null;
----
id:int4

select id from t where id in (5, 1, 3, 1) order by id;
----
id:int4
1
3
5

select id from t where id between 2 and 4 order by id desc;
----
id:int4
4
3
2

select id from t where id > 1 and id < 2;
----
id:int4

select id from t where id > 3 and id < 2;
----
id:int4

select id from t where 3 < id order by id;
----
id:int4
4
5

select id from t where id = 1 and id = 2;
----
id:int4

select id from t where id = null;
----
id:int4

select id from t where (id, a) in ((1, 'x'), (2, 'nope')) order by id;
----
id:int4
1

select id from t where c = 'NaN' order by id;
----
id:int4
3

select id from t where c < 0 order by id;
----
id:int4
2
5

select id from t where id = 99999999999;
----
id:int4

select id from t where id = 1.0;
----
id:int4
1

select id from t where a like '%' order by id;
----
id:int4
1
2
4
5

values (1, 'a'), (2, 'b');
----
column1:int4|column2:text
1|a
2|b

values (1, 'a'), (2);
----
ERROR 42601: VALUES lists must all be the same length [at 19]

values (1), ('x');
----
ERROR 22P02: invalid input syntax for type integer: "x" [at 14]

values (2), (1), (3) order by 1;
----
column1:int4
1
2
3

values (1), (2.5::float8);
----
column1:float8
1
2.5

values (default);
----
ERROR 42601: DEFAULT is not allowed in this context [at 9]

select * ;
----
ERROR 42601: SELECT * with no tables specified is not valid [at 8]

# PostgreSQL allows an empty select list.
select;
select from t where false;
select limit 1;
----
(no columns)
()
(no columns)
(no columns)
()

select 1 where false;
----
?column?:int4

select 1 from t where id = 1;
----
?column?:int4
1

select count(*) from t where false;
----
count:int8
0

select q(a, b) from t;
----
ERROR 42883: function q(text, bigint) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select u.i, u.a from t as u(i) where i = 1;
----
i:int4|a:text
1|x

select * from t as u(a, b, c, d, e);
----
ERROR 42P10: table "u" has 4 columns available but 5 columns specified

# A long list of constants uses binary search.
create table many (id int primary key, v int, s text);
insert into many values (1, 10, 'a'), (2, 40, 'b'), (3, null, null), (4, 99, 'z');
select id from many where v in (40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19,
18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 7, 7) order by id;
select id from many where v not in (40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20,
19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 7, 7) order by id;
select id from many where v not in (40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20,
19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, null, 7) order by id;
select id from many where s in ('a', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r',
's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 'aa', 'ab', 'ac', 'ad', 'ae', 'af', 'ag', 'ah', null) order by id;
----
CREATE TABLE
INSERT 0 4
id:int4
1
2
id:int4
4
id:int4
id:int4
1
4

values ();
----
ERROR 42601: syntax error at or near ")" [at 9]

# Parentheses in GROUP BY only enclose; DISTINCT ON knows positions and names of the output.
create table gr (id int primary key, dept text, sal int);
insert into gr values (1,'a',10),(2,'a',20),(3,'b',30),(4,'b',40),(5,'c',null);
select dept, sal, count(*) from gr group by (dept, sal) order by 1, 2;
select dept d, sal from gr group by (d), (2) order by (d), 2;
select dept, id from gr group by ((dept, id)), sal order by id;
select distinct on (1) dept, id from gr order by 1, 2;
select distinct on (d) dept d, id from gr order by d, id desc;
select distinct on ((d)) dept d, id from gr order by 1, id desc;
select distinct on (2, 1) dept, id % 2 from gr order by 1, 2;
select distinct on (dept || 'x') dept, id from gr order by dept || 'x', id;
select distinct on (3) dept, id from gr;
select distinct on ('a') dept, id from gr;
select distinct on (d) dept d, id d from gr;
select distinct on (1) dept, id from gr order by 2;
----
CREATE TABLE
INSERT 0 5
dept:text|sal:int4|count:int8
a|10|1
a|20|1
b|30|1
b|40|1
c|NULL|1
d:text|sal:int4
a|10
a|20
b|30
b|40
c|NULL
dept:text|id:int4
a|1
a|2
b|3
b|4
c|5
dept:text|id:int4
a|1
b|3
c|5
d:text|id:int4
a|2
b|4
c|5
d:text|id:int4
a|2
b|4
c|5
dept:text|?column?:int4
a|0
a|1
b|0
b|1
c|1
dept:text|id:int4
a|1
b|3
c|5
ERROR 42P10: DISTINCT ON position 3 is not in select list [at 21]
ERROR 42601: non-integer constant in DISTINCT ON [at 21]
ERROR 42702: DISTINCT ON "d" is ambiguous [at 21]
ERROR 42P10: SELECT DISTINCT ON expressions must match initial ORDER BY expressions [at 21]
