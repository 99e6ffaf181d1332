# INSERT, UPDATE, DELETE: values, defaults, constraints, RETURNING.
create table t (id int primary key, v varchar(5) default 'dflt', n int8 not null default 7, f float8, at timestamptz);
----
CREATE TABLE

insert into t values (1, 'one', 1, 1.5, '2024-01-01');
----
INSERT 0 1

insert into t (id) values (2);
----
INSERT 0 1

insert into t (id, v) values (3, default), (4, null);
----
INSERT 0 2

insert into t (n, id) values (50, 5) returning *;
----
id:int4|v:varchar|n:int8|f:float8|at:timestamptz
5|dflt|50|NULL|NULL
INSERT 0 1

insert into t values (6) returning id, v as vv, n + 1;
----
id:int4|vv:varchar|?column?:int8
6|dflt|8
INSERT 0 1

insert into t default values;
----
ERROR 23502: null value in column "id" of relation "t" violates not-null constraint
DETAIL: Failing row contains (null, dflt, 7, null, null).

insert into t values (1, 'dup');
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(1) already exists.

insert into t values (7), (7);
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(7) already exists.

insert into t (id, n) values (8, null);
----
ERROR 23502: null value in column "n" of relation "t" violates not-null constraint
DETAIL: Failing row contains (8, dflt, null, null, null).

insert into t values (null);
----
ERROR 23502: null value in column "id" of relation "t" violates not-null constraint
DETAIL: Failing row contains (null, dflt, 7, null, null).

insert into t (id, v) values (9, 'toolong');
----
ERROR 22001: value too long for type character varying(5)

insert into t (id, v) values (9, 'abc     ');
----
INSERT 0 1

select id, v, length(v) from t where id = 9;
----
id:int4|v:varchar|length:int4
9|abc  |5

insert into t (id, nope) values (1, 2);
----
ERROR 42703: column "nope" of relation "t" does not exist [at 20]

insert into t (id, id) values (1, 2);
----
ERROR 42701: column "id" specified more than once [at 20]

insert into t (id, v) values (1);
----
ERROR 42601: INSERT has more target columns than expressions [at 20]

insert into t (id) values (1, 2);
----
ERROR 42601: INSERT has more expressions than target columns [at 31]

insert into t values (1, 2, 3, 4, 5, 6);
----
ERROR 42601: INSERT has more expressions than target columns [at 38]

insert into nope values (1);
----
ERROR 42P01: relation "nope" does not exist [at 13]

insert into t (id) values ('x');
----
ERROR 22P02: invalid input syntax for type integer: "x" [at 28]

insert into t (id) values (true);
----
ERROR 42804: column "id" is of type integer but expression is of type boolean [at 28]
HINT: You will need to rewrite or cast the expression.

insert into t (id, v) values (10, 5);
----
INSERT 0 1

insert into t (id, at) values (11, 5);
----
ERROR 42804: column "at" is of type timestamp with time zone but expression is of type integer [at 36]
HINT: You will need to rewrite or cast the expression.

insert into t (id, n) values (12, 2.5);
----
INSERT 0 1

insert into t (id, n) values (13, 1e30);
----
ERROR 22003: bigint out of range

insert into t (id) values (3000000000);
----
ERROR 22003: integer out of range

insert into t (id, f) values (14, 1), (15, '2.5'), (16, 'nan');
----
INSERT 0 3

insert into t (id) values (17), (18, 19);
----
ERROR 42601: VALUES lists must all be the same length [at 34]

select id, v, n, f, at from t order by id;
----
id:int4|v:varchar|n:int8|f:float8|at:timestamptz
1|one|1|1.5|2024-01-01 00:00:00+00
2|dflt|7|NULL|NULL
3|dflt|7|NULL|NULL
4|NULL|7|NULL|NULL
5|dflt|50|NULL|NULL
6|dflt|7|NULL|NULL
9|abc  |7|NULL|NULL
10|5|7|NULL|NULL
12|dflt|3|NULL|NULL
14|dflt|7|1|NULL
15|dflt|7|2.5|NULL
16|dflt|7|NaN|NULL

insert into t (id, v) select id + 100, v from t where id <= 2 returning id, v;
----
id:int4|v:varchar
101|one
102|dflt
INSERT 0 2

insert into t (id, n) select id + 1000, n from t order by id limit 2;
----
INSERT 0 2

insert into t (id) select 'x';
----
ERROR 22P02: invalid input syntax for type integer: "x" [at 27]

insert into t (id, v) select 200, 'lit';
----
INSERT 0 1

insert into t (id) select a from t;
----
ERROR 42703: column "a" does not exist [at 27]

update t set n = n + 1 where id = 1 returning n;
----
n:int8
2
UPDATE 1

update t set n = 0, v = 'upd' where id in (2, 3) returning id, v, n;
----
id:int4|v:varchar|n:int8
2|upd|0
3|upd|0
UPDATE 2

update t set n = null where id = 1;
----
ERROR 23502: null value in column "n" of relation "t" violates not-null constraint
DETAIL: Failing row contains (1, one, null, 1.5, 2024-01-01 00:00:00+00).

update t set v = 'toolong' where id = 1;
----
ERROR 22001: value too long for type character varying(5)

update t set nope = 1;
----
ERROR 42703: column "nope" of relation "t" does not exist [at 14]

update t set n = 'x';
----
ERROR 22P02: invalid input syntax for type bigint: "x" [at 18]

update t set n = true;
----
ERROR 42804: column "n" is of type bigint but expression is of type boolean [at 18]
HINT: You will need to rewrite or cast the expression.

update t set n = 1, n = 2;
----
ERROR 42601: multiple assignments to same column "n"

update t set (n, v) = (99, 'tup') where id = 4 returning n, v;
----
n:int8|v:varchar
99|tup
UPDATE 1

update t set (n, v) = (1, 2, 3);
----
ERROR 42601: number of columns does not match number of values [at 23]

update t set v = default where id = 4 returning v;
----
v:varchar
dflt
UPDATE 1

update t set n = n where id = 99999;
----
UPDATE 0

update t set id = 50 where id = 5 returning id;
----
id:int4
50
UPDATE 1

update t set id = 1 where id = 2;
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(1) already exists.

update t set id = id where id = 3;
----
UPDATE 1

update t x set n = x.n + 1 where x.id = 1 returning x.n;
----
n:int8
3
UPDATE 1

update t x set n = t.n + 1;
----
ERROR 42P01: invalid reference to FROM-clause entry for table "t" [at 20]
HINT: Perhaps you meant to reference the table alias "x".

update nope set a = 1;
----
ERROR 42P01: relation "nope" does not exist [at 8]

update t set t.n = 1;
----
ERROR 42703: column "t" of relation "t" does not exist [at 14]

delete from t where id = 200 returning *;
----
id:int4|v:varchar|n:int8|f:float8|at:timestamptz
200|lit|7|NULL|NULL
DELETE 1

delete from t where id > 100;
----
DELETE 4

delete from t as x where x.id = 16;
----
DELETE 1

delete from nope;
----
ERROR 42P01: relation "nope" does not exist [at 13]

delete from t where nope = 1;
----
ERROR 42703: column "nope" does not exist [at 21]

select count(*) from t;
----
count:int8
11

# Hidden row id.
create table h (a int, b text);
----
CREATE TABLE

insert into h values (1, 'x'), (1, 'x'), (2, 'y');
----
INSERT 0 3

update h set b = 'z' where a = 1 returning *;
----
a:int4|b:text
1|z
1|z
UPDATE 2

delete from h where a = 2;
----
DELETE 1

select * from h;
----
a:int4|b:text
1|z
1|z

insert into h select * from h;
----
INSERT 0 2

select count(*) from h;
----
count:int8
4

# Keys of several columns and types.
create table k (a text, b int, c timestamptz, d float8, primary key (b, a));
----
CREATE TABLE

insert into k values ('x', 1), ('x', 2), ('y', 1), ('', -1);
----
INSERT 0 4

select a, b from k order by b, a;
----
a:text|b:int4
|-1
x|1
y|1
x|2

select a, b from k where b = 1 order by a desc;
----
a:text|b:int4
y|1
x|1

insert into k values ('y', 1);
----
ERROR 23505: duplicate key value violates unique constraint "k_pkey"
DETAIL: Key (b, a)=(1, y) already exists.

update k set a = 'moved', b = 9 where a = 'y' returning a, b;
----
a:text|b:int4
moved|9
UPDATE 1

select a, b from k where b >= 1 and b <= 9 order by b desc, a desc;
----
a:text|b:int4
moved|9
x|2
x|1

# ON CONFLICT.
insert into t (id, v) values (1, 'c') on conflict do nothing;
----
INSERT 0 0

insert into t (id, v) values (1, 'c'), (60, 'c'), (60, 'd') on conflict (id) do nothing returning id;
----
id:int4
60
INSERT 0 1

insert into t (id, v) values (1, 'ups') on conflict (id) do update set v = excluded.v, n = t.n + 1 returning id, v;
----
id:int4|v:varchar
1|ups
INSERT 0 1

insert into t (id, v) values (1, 'no') on conflict (id) do update set v = excluded.v where t.n < 0 returning id;
----
id:int4
INSERT 0 0

insert into t (id) values (61), (61) on conflict (id) do update set n = 1;
----
ERROR 21000: ON CONFLICT DO UPDATE command cannot affect row a second time
HINT: Ensure that no rows proposed for insertion within the same command have duplicate constrained values.

insert into t (id) values (1) on conflict (v) do nothing;
----
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification

insert into t (id) values (1) on conflict (nope) do nothing;
----
ERROR 42703: column "nope" does not exist [at 43]

insert into t (id) values (1) on conflict do update set n = 1;
----
ERROR 42601: ON CONFLICT DO UPDATE requires inference specification or constraint name [at 13]
HINT: For example, ON CONFLICT (column_name).

insert into t (id) values (1) on conflict on constraint t_pkey do nothing;
----
INSERT 0 0

insert into t (id) values (1) on conflict on constraint nope do nothing;
----
ERROR 42704: constraint "nope" for table "t" does not exist

insert into t (id) values (1) on conflict (id) do update set n = n + 1;
----
ERROR 42702: column reference "n" is ambiguous [at 66]

# A literal takes the type of the column, but not under DISTINCT: there it is text.
create table literals (d date);
insert into literals select '2024-01-02';
insert into literals select distinct '2024-01-02';
----
CREATE TABLE
INSERT 0 1
ERROR 42804: column "d" is of type date but expression is of type text [at 22]
HINT: You will need to rewrite or cast the expression.
