# Columns that USING and NATURAL merge: one for several, at the place of their join.

create table a (k int, s int, a1 int);
create table b (k int, s int, b1 int);
create table c (k int, s bigint, c1 int);
insert into a values (1, 10, 100), (2, 20, 200), (null, 30, 300);
insert into b values (1, 1, 1), (3, 20, 2);
insert into c values (1, 1, 1), (3, 20, 3), (4, 30, 4);
select * from a join b using (k) join c using (k);
select k from a join b using (k) join c using (k) where k = 1 group by k order by k;
select a.k, b.k, c.k, k from a join b using (k) left join c using (k);
select * from a full join b using (k) full join c using (k) order by k, a1;
select * from a left join b using (k) full join c using (k) order by k, a1;
select * from a full join b using (k) left join c using (k) order by k, a1;
select * from a right join b using (k) right join c using (k) order by k;
select * from a join (b join c using (k)) using (k);
select * from (a join b using (k)) join (b b2 join c using (k)) using (k);
select * from a join b using (k) join c using (k) join a d using (k);
select * from a join b using (k) join c on c.s = a.s join a d using (a1);
select * from a join b using (k) join c using (s);
select * from a left join b using (s, k) left join c using (k, s) order by a1;
select * from a natural join b natural left join c;
select * from a natural left join b natural left join c order by a1;
select * from a, b join c using (k) where a.k = 1;
select * from b join c using (k), a where a.k = 1;
select * from a cross join (b join c using (k)) where a.k = 1;
select * from a left join (b join c using (k)) on a.k = b.k order by a1;
select a.*, b.* from a, b join c using (k) where a.k = 1;
select k from a, b join c using (k);
select * from a join b using (k) join c on true join a d using (k);
select * from (a cross join b) join c using (k);
select * from (select * from a join b using (k) join c using (k)) j(x, y);
select * from (a left join (b join c using (k, s)) on a.k = b.k) j(p, q) order by q;
select 1 from a join b using (k, k);
select 1 from a join b using (z);
create table d (a int, b int, c int, d int, e int, f int, g int, h int);
insert into d select * from a cross join (b join c using (k)) order by 1, 2;
insert into d select * from a cross join (b join c using (k, s)) order by 1, 2;
select * from d order by b, d;
update d set f = 0 from b join c using (k) where d.a = b.k and d.d = b.k returning *;
delete from d using b join c using (k) where d.a = b.k and d.d = b.k returning *;
create view v as select * from a, b join c using (k);
create view v as select a.k ak, b.s bs, c.c1 from a, b join c using (k, s);
create view w as select * from a join b using (k, s) full join c using (k, s);
select * from w order by k, s;
create view x as select * from (select 1 x) q, a full join b using (s, k);
select * from x order by s;
create view y as select k, a1, b1, c1 from a left join b using (k) right join c using (k);
select * from y order by k;
select sum(k), count(*) from a natural full join b natural full join c;
select k, s, count(*) from a full join b using (k, s) group by k, s order by 1, 2;
select * from a full join b using (k, s) group by k;
select not exists (select 1), exists (select 1);
create table vi (k int, v varchar(5), x int);
create table vb (k bigint, v varchar(9), y int);
create view vj as select * from vi join vb using (k, v);
create view vn as select * from vi natural left join vb;
create view vr as select * from vb right join vi using (k, v);
insert into vi values (1, 'a', 2);
insert into vb values (1, 'a', 3);
select * from vj, vn;
select * from vr;
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
INSERT 0 3
INSERT 0 2
INSERT 0 3
k:int4|s:int4|a1:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|1|1
k:int4
1
k:int4|k:int4|k:int4|k:int4
1|1|1|1
k:int4|s:int4|a1:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|1|1
2|20|200|NULL|NULL|NULL|NULL
3|NULL|NULL|20|2|20|3
4|NULL|NULL|NULL|NULL|30|4
NULL|30|300|NULL|NULL|NULL|NULL
k:int4|s:int4|a1:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|1|1
2|20|200|NULL|NULL|NULL|NULL
3|NULL|NULL|NULL|NULL|20|3
4|NULL|NULL|NULL|NULL|30|4
NULL|30|300|NULL|NULL|NULL|NULL
k:int4|s:int4|a1:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|1|1
2|20|200|NULL|NULL|NULL|NULL
3|NULL|NULL|20|2|20|3
NULL|30|300|NULL|NULL|NULL|NULL
k:int4|s:int4|a1:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|1|1
3|NULL|NULL|20|2|20|3
4|NULL|NULL|NULL|NULL|30|4
k:int4|s:int4|a1:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|1|1
k:int4|s:int4|a1:int4|s:int4|b1:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|1|1|1|1
k:int4|s:int4|a1:int4|s:int4|b1:int4|s:int8|c1:int4|s:int4|a1:int4
1|10|100|1|1|1|1|10|100
a1:int4|k:int4|s:int4|s:int4|b1:int4|k:int4|s:int8|c1:int4|k:int4|s:int4
ERROR 42702: common column name "s" appears more than once in left table [at 48]
k:int4|s:int8|a1:int4|b1:int4|c1:int4
1|10|100|NULL|NULL
2|20|200|NULL|NULL
NULL|30|300|NULL|NULL
k:int4|s:int8|a1:int4|b1:int4|c1:int4
k:int4|s:int8|a1:int4|b1:int4|c1:int4
1|10|100|NULL|NULL
2|20|200|NULL|NULL
NULL|30|300|NULL|NULL
k:int4|s:int4|a1:int4|k:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|1|1|1
1|10|100|3|20|2|20|3
k:int4|s:int4|b1:int4|s:int8|c1:int4|k:int4|s:int4|a1:int4
1|1|1|1|1|1|10|100
3|20|2|20|3|1|10|100
k:int4|s:int4|a1:int4|k:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|1|1|1
1|10|100|3|20|2|20|3
k:int4|s:int4|a1:int4|k:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|1|1|1
2|20|200|NULL|NULL|NULL|NULL|NULL
NULL|30|300|NULL|NULL|NULL|NULL|NULL
k:int4|s:int4|a1:int4|k:int4|s:int4|b1:int4
1|10|100|1|1|1
1|10|100|3|20|2
ERROR 42702: column reference "k" is ambiguous [at 8]
ERROR 42702: common column name "k" appears more than once in left table [at 65]
ERROR 42702: common column name "k" appears more than once in left table [at 46]
x:int4|y:int4|a1:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|1|1
p:int4|q:int4|a1:int4|k:int4|s:int8|b1:int4|c1:int4
1|10|100|1|1|1|1
2|20|200|NULL|NULL|NULL|NULL
NULL|30|300|NULL|NULL|NULL|NULL
ERROR 42701: column name "k" appears more than once in USING clause [at 34]
ERROR 42703: column "z" specified in USING clause does not exist in left table [at 31]
CREATE TABLE
INSERT 0 6
INSERT 0 6
a:int4|b:int4|c:int4|d:int4|e:int4|f:int4|g:int4|h:int4
1|10|100|1|1|1|1|1
1|10|100|1|1|1|1|NULL
1|10|100|3|20|2|20|3
1|10|100|3|20|2|3|NULL
2|20|200|1|1|1|1|1
2|20|200|1|1|1|1|NULL
2|20|200|3|20|2|20|3
2|20|200|3|20|2|3|NULL
NULL|30|300|1|1|1|1|1
NULL|30|300|1|1|1|1|NULL
NULL|30|300|3|20|2|20|3
NULL|30|300|3|20|2|3|NULL
a:int4|b:int4|c:int4|d:int4|e:int4|f:int4|g:int4|h:int4|k:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|0|1|1|1|1|1|1|1
1|10|100|1|1|0|1|NULL|1|1|1|1|1
UPDATE 2
a:int4|b:int4|c:int4|d:int4|e:int4|f:int4|g:int4|h:int4|k:int4|s:int4|b1:int4|s:int8|c1:int4
1|10|100|1|1|0|1|1|1|1|1|1|1
1|10|100|1|1|0|1|NULL|1|1|1|1|1
DELETE 2
ERROR 42701: column "k" specified more than once
CREATE VIEW
CREATE VIEW
k:int4|s:int8|a1:int4|b1:int4|c1:int4
1|1|NULL|NULL|1
3|20|NULL|NULL|3
4|30|NULL|NULL|4
CREATE VIEW
x:int4|s:int4|k:int4|a1:int4|b1:int4
1|1|1|NULL|1
1|10|1|100|NULL
1|20|2|200|NULL
1|20|3|NULL|2
1|30|NULL|300|NULL
CREATE VIEW
k:int4|a1:int4|b1:int4|c1:int4
1|100|1|1
3|NULL|NULL|3
4|NULL|NULL|4
sum:int8|count:int8
11|6
k:int4|s:int4|count:int8
1|1|1
1|10|1
2|20|1
3|20|1
NULL|30|1
ERROR 42803: column "a.s" must appear in the GROUP BY clause or be used in an aggregate function [at 8]
?column?:bool|exists:bool
f|t
CREATE TABLE
CREATE TABLE
CREATE VIEW
CREATE VIEW
CREATE VIEW
INSERT 0 1
INSERT 0 1
k:int8|v:varchar|x:int4|y:int4|k:int8|v:varchar|x:int4|y:int4
1|a|2|3|1|a|2|3
k:int8|v:varchar|y:int4|x:int4
1|a|3|2

# Of two types an inner join has the column that is not converted.
select * from (values (1)) a(k) join (values (1.0)) b(k) using (k);
select * from (values (1.0)) a(k) join (values (1)) b(k) using (k);
select * from (values (1)) a(k) natural join (values (1.00)) b(k);
select k, pg_typeof(k), a.k, b.k from (values (1)) a(k) join (values (1.0)) b(k) using (k) where k = 1 group by k, a.k, b.k;
select * from (values (1)) a(k) left join (values (1.0)) b(k) using (k);
select * from (values (1)) a(k) right join (values (1.0)) b(k) using (k);
select * from (values (1)) a(k) full join (values (1.0)) b(k) using (k);
select k from (values (1)) a(k) join (values (1.0)) b(k) using (k) join (values (1.00)) c(k) using (k);
----
k:numeric
1.0
k:numeric
1.0
k:numeric
1.00
k:numeric|pg_typeof:regtype|k:int4|k:numeric
1.0|numeric|1|1.0
k:numeric
1
k:numeric
1.0
k:numeric
1
k:numeric
1.0
