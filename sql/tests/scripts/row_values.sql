# Rows beside sub-queries, stars as rows, and FOR UPDATE OF several tables.

create table q (id int primary key, s int, v text);
insert into q values (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c'), (4, null, 'd');
select id from q where (s, id) > (select s, id from q where id = 1) order by id;
select id from q where (id, s) = (select max(id), max(s) from q);
select id from q where (id, v) = (select id, v from q where v = 'c');
select id from q a where (id, v) <= (select id, v from q b where b.s > a.s) order by id;
select (1, 2) = (select 1, 2), (1, 2) < (select 1, 3), (1, 2) <> (select 1, 3 where false), row(1) = (select 1);
select row(1, 2) in (select 1, 2), row(1, 2) not in (select 1, 3), row(1, 2) = any (select 1, 2);
select (1, 2) = (select 1);
select (1, 2) = (select 1, 2, 3);
select row(1, 2) in (select 1);
select (1, 2) = (select 1, 2 union all select 1, 3);
select (1, 'x') = (select 1, 2);
select a.id from q a join q b on a.id = b.id where a.* is distinct from b.*;
select a.id, a.* is distinct from b.*, a.* is not distinct from b.* from q a full join q b on a.id = b.id + 1 order by a.id;
select a.id from q a join q b using (id) where id < 3 order by 1 for update of a, b;
select a.id from q a join q b using (id) where id < 3 order by 1 for no key update of a, b skip locked;
select a.id from q a, q b, q c where a.id = b.id and b.id = c.id and a.id = 1 for share of a, b nowait for key share of c;
select a.id from q a for update of a, z;
----
CREATE TABLE
INSERT 0 4
id:int4
2
3
id:int4
id:int4
3
id:int4
1
2
?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|t|NULL|t
?column?:bool|?column?:bool|?column?:bool
t|t|t
ERROR 42601: subquery has too few columns [at 15]
ERROR 42601: subquery has too many columns [at 15]
ERROR 42601: subquery has too few columns [at 18]
ERROR 21000: more than one row returned by a subquery used as an expression
ERROR 22P02: invalid input syntax for type integer: "x" [at 12]
id:int4
id:int4|?column?:bool|?column?:bool
1|t|f
2|t|f
3|t|f
4|t|f
NULL|t|f
id:int4
1
2
id:int4
1
2
id:int4
1
ERROR 42P01: relation "z" in FOR UPDATE clause not found in FROM clause [at 39]
