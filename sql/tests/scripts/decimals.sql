# Decimal literals are floats, but exact next to integers.
create table t (id bigint primary key, n int);
insert into t values (9007199254740992, 1), (9007199254740993, 2), (9223372036854775807, 3), (-5, -5);
----
CREATE TABLE
INSERT 0 4

select id from t where id = 9007199254740993.0;
----
id:int8
9007199254740993

select id from t where id > 9007199254740992.5 order by id;
----
id:int8
9007199254740993
9223372036854775807

select id from t where 9007199254740992.5 > id and id > -4.5 order by id;
----
id:int8
9007199254740992

select id from t where id in (9007199254740993.0, 1.5, -5) order by id;
----
id:int8
-5
9007199254740993

select id from t where id not in (9007199254740993.0, 1.5) order by id;
----
id:int8
-5
9007199254740992
9223372036854775807

select id from t where id in (1.5);
----
id:int8

select count(*) from t where n not in (1.5) or n in (2.5);
----
count:int8
4

select id from t where id between 9007199254740992.1 and 9223372036854775807.5 order by id;
----
id:int8
9007199254740993
9223372036854775807

select id from t where id < 99999999999999999999 and id >= 9223372036854775807.0;
----
id:int8
9223372036854775807

select id from t where id is not distinct from 9007199254740993.0;
----
id:int8
9007199254740993

select n is distinct from 1.5, n is not distinct from 1.5, n is distinct from 2.0 from t where n = 2;
----
?column?:bool|?column?:bool|?column?:bool
t|f|f

select case id when 9007199254740993.0 then 'exact' else 'other' end from t where n in (1, 2) order by n;
----
case:text
other
exact

select 9007199254740993 = 9007199254740992.0, 9007199254740993.0 in (9007199254740992, 9007199254740993);
----
?column?:bool|?column?:bool
f|t

insert into t values (9007199254740995.4, 2.5) returning *;
----
id:int8|n:int4
9007199254740995|3
INSERT 0 1

select 9007199254740993.0::bigint, 2.5::int, -2.5::int, 9223372036854775807.4::bigint;
----
int8:int8|int4:int4|?column?:int4|int8:int8
9007199254740993|3|-3|9223372036854775807

select 9223372036854775807.5::bigint;
----
ERROR 22003: bigint out of range

explain select * from t where id >= 1.5 and id < 7.0;
----
Range Scan on t
  Key: ((id > 1) AND (id < 7))

# Next to floats they are floats.
select 0.1::float8 + 0.2 = 0.3, 1.5 = 1.5, nullif(1, 2.5), nullif(3, 3.0);
----
?column?:bool|?column?:bool|nullif:float8|nullif:float8
f|t|1|NULL
