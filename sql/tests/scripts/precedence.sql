# Operator precedence is PostgreSQL's. An operator that took all that follows as its operand changed the wrong rows.
create table t (id int primary key, flag bool);
insert into t values (1, true), (2, false), (3, null), (5, false), (6, true);
----
CREATE TABLE
INSERT 0 5

delete from t where flag is distinct from true and id = 5 returning id;
----
id:int4
5
DELETE 1

select id from t where flag is not distinct from null or id = 1 order by id;
----
id:int4
1
3

select 1 is distinct from 2 and false, (null is distinct from 1) is null;
----
?column?:bool|?column?:bool
f|f

select not 1 = 2, not null is null, 1 = 2 is null, true = not false;
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|f|f|t

select -2 ^ 2, - 2 ^ 2, 2 * - 3 ^ 2, 2 ^ 3 ^ 2;
----
?column?:float8|?column?:float8|?column?:float8|?column?:float8
4|4|18|64

select ~ 1 + 2, ~1 = -2, 1 | 2 + 4, 2 # 3 | 1, 1 << 1 + 1;
----
?column?:int4|?column?:bool|?column?:int4|?column?:int4|?column?:int4
-4|t|7|1|4

select 'a' ~~ 'a' || 'b', 'a' || 'b' ~~ 'ab';
----
?column?:text|?column?:bool
trueb|t

select 1 isnull, 1 notnull, null isnull and true;
----
?column?:bool|?column?:bool|?column?:bool
f|t|t

select 1>-1, 1>=-1, 1<>-1, 1<-1, 1<=-1, 1=-1, 1>+1, 2*-1, 2/-1;
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:int4|?column?:int4
t|t|t|f|f|f|f|-2|-2

# Comparisons are not associative.
select 1 < 2 = true;
----
ERROR 42601: syntax error at or near "=" [at 14]

select (1 < 2) = true, 1 < 2 is true;
----
?column?:bool|?column?:bool
t|t

select 1 <= 2 >= 1;
----
ERROR 42601: syntax error at or near ">=" [at 15]

select 'a' like 'a' like 'b';
----
ERROR 42601: syntax error at or near "like" [at 21]

select 1 between 0 and 2 between false and true;
----
ERROR 42601: syntax error at or near "between" [at 26]

select 1 is distinct from 2 is null;
----
ERROR 42601: syntax error at or near "is" [at 29]

select 1 between 0 and 2 = true, true = 1 in (1), 1 in (1) in (true), null is null is null;
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|t|t|f

select 'a' like 'a' escape '' || '';
----
ERROR 0A000: ESCAPE with more than a literal is not supported yet [at 34]

# Operators and keywords that do not exist.
select 1 == 1;
----
ERROR 42883: operator does not exist: integer == integer [at 10]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.

select true xor true;
----
ERROR 42601: syntax error at or near "true" [at 17]

select 1 not null;
----
ERROR 42601: syntax error at or near "null" [at 14]

select id from t for no key update;
----
id:int4
1
2
3
6

select id from t for key share;
----
id:int4
1
2
3
6

# Numbers in ORDER BY.
select id from t order by -1;
----
ERROR 42P10: ORDER BY position -1 is not in select list [at 27]

select id from t order by 2;
----
ERROR 42P10: ORDER BY position 2 is not in select list [at 27]

select id from t order by (1) desc limit 1;
----
id:int4
6

select id from t order by 1.5;
----
ERROR 42601: non-integer constant in ORDER BY [at 27]

# Strings continue after a line break, and are not names.
select 'foo'
'bar';
----
?column?:text
foobar

select 'foo' 'bar';
----
ERROR 42601: syntax error at or near "'bar'" [at 14]

select 1 as 'b';
----
ERROR 42601: syntax error at or near "'b'" [at 13]

select id 'b' from t;
----
ERROR 42704: type "id" does not exist [at 8]

select * from t 'u';
----
ERROR 42601: syntax error at or near "'u'"

select * from 't';
----
ERROR 42601: syntax error at or near "'t'"

insert into 't' values (9);
----
ERROR 42601: syntax error at or near "'t'"

# Deep nesting where the parser tries alternatives, or prints the tree.
assert true and false;
----
ERROR 0A000: ASSERT is not supported yet

explain (format x || 'y') select 1;
----
ERROR 0A000: this format of EXPLAIN is not supported yet [at 17]

explain analyze verbose select 1;
----
Result (actual time=... rows=1 loops=1)
  Output: 1
Planning Time: ... ms
Execution Time: ... ms

# Prefix operators take all that binds closer.
select @ -5 - 3, |/ 25 + 11, ||/ 2 * 4, @ (-1) # 3, - @ -2;
----
?column?:int4|?column?:float8|?column?:float8|?column?:int4|?column?:int4
8|6|2|2|-2
