# Operators: result types, three-valued logic, errors and their positions.
select 1 + 2, 7 / 2, -7 / 2, 7 % 3, -7 % 3, 2 * 3, 5 - 8;
----
?column?:int4|?column?:int4|?column?:int4|?column?:int4|?column?:int4|?column?:int4|?column?:int4
3|3|-3|1|-1|6|-3

select 1 / 0;
----
ERROR 22012: division by zero

select 1 % 0;
----
ERROR 22012: division by zero

select 1.0::float8 / 0;
----
ERROR 22012: division by zero

select 2147483647 + 1;
----
ERROR 22003: integer out of range

select 9223372036854775807 + 1;
----
ERROR 22003: bigint out of range

select -(-2147483648);
----
?column?:int8
2147483648

select (-2147483648) / (-1);
----
ERROR 22003: integer out of range

select 32767::int2 + 1::int2;
----
ERROR 22003: smallint out of range

select 1::int2 + 1::int4, 1::int4 + 1::int8, 1 + 1.5::float8;
----
?column?:int4|?column?:int8|?column?:float8
2|2|2.5

select 1e308::float8 * 10;
----
ERROR 22003: value out of range: overflow

select 1e-300::float8 * 1e-300::float8;
----
ERROR 22003: value out of range: underflow

select 2 ^ 10, 2::float8 ^ 0.5::float8;
----
?column?:float8|?column?:float8
1024|1.4142135623730951

select 5 & 3, 5 | 3, 5 # 3, 1 << 4, 256 >> 2, ~5;
----
?column?:int4|?column?:int4|?column?:int4|?column?:int4|?column?:int4|?column?:int4
1|7|6|16|64|-6

select 'a' || 'b', 'a' || 1, 1 || 'a', true || 'x', 'x' || null;
----
?column?:text|?column?:text|?column?:text|?column?:text|?column?:text
ab|a1|1a|truex|NULL

select 1 || 2;
----
ERROR 42883: operator does not exist: integer || integer [at 10]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.

select '\x01'::bytea || '\x02'::bytea;
----
?column?:bytea
\x0102

select 1 = 1, 1 <> 2, 1 != 2, 'a' < 'b', 'Z' < 'a', true > false;
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|t|t|t|t|t

select 1 = '1', '1' = 1;
----
?column?:bool|?column?:bool
t|t

select 1 = 'x';
----
ERROR 22P02: invalid input syntax for type integer: "x" [at 12]

select 1 = true;
----
ERROR 42883: operator does not exist: integer = boolean [at 10]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.

select 'a' = 1;
----
ERROR 22P02: invalid input syntax for type integer: "a" [at 8]

select 1 + 'a';
----
ERROR 22P02: invalid input syntax for type integer: "a" [at 12]

select 1 + true;
----
ERROR 42883: operator does not exist: integer + boolean [at 10]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.

select true + true;
----
ERROR 42883: operator does not exist: boolean + boolean [at 13]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.

select 'a' + 'b';
----
ERROR 42725: operator is not unique: unknown + unknown [at 12]
HINT: Could not choose a best candidate operator. You might need to add explicit type casts.

select - 'a';
----
ERROR 42725: operator is not unique: - unknown [at 8]
HINT: Could not choose a best candidate operator. You might need to add explicit type casts.

select -true;
----
ERROR 42883: operator does not exist: - boolean [at 8]
HINT: No operator matches the given name and argument type. You might need to add an explicit type cast.

select not 1;
----
ERROR 42804: argument of NOT must be type boolean, not type integer [at 12]

select 1 and true;
----
ERROR 42804: argument of AND must be type boolean, not type integer [at 8]

select true and 'x';
----
ERROR 22P02: invalid input syntax for type boolean: "x" [at 17]

select true or null, false or null, true and null, false and null, not null::bool;
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|NULL|NULL|f|NULL

select null = null, null <> 1, null is null, 1 is not null;
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool
NULL|NULL|t|t

select 1 is distinct from null, null is distinct from null, 1 is not distinct from 1;
----
?column?:bool|?column?:bool|?column?:bool
t|f|t

select true is true, null is not true, false is false, null::bool is unknown, true is not unknown;
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|t|t|t|t

select 1 is true;
----
ERROR 42804: argument of IS TRUE must be type boolean, not type integer [at 8]

select 2 between 1 and 3, 2 not between 1 and 3, null between 1 and 2, 5 between 1 and null;
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|f|NULL|NULL

select 1 between 'a' and 2;
----
ERROR 22P02: invalid input syntax for type integer: "a" [at 18]

select 1 between true and 2;
----
ERROR 42883: operator does not exist: integer >= boolean [at 10]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.

select 1 in (1, 2), 3 in (1, 2), 3 in (1, null), 1 in (1, null), 3 not in (1, 2), 3 not in (1, null);
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|f|NULL|t|t|NULL

select 1 in ('1', '2'), 1 in (1.5, 1), 'a' in ('a', 'b');
----
?column?:bool|?column?:bool|?column?:bool
t|t|t

select 1 in ('x');
----
ERROR 22P02: invalid input syntax for type integer: "x" [at 14]

select 1 in (true);
----
ERROR 42883: operator does not exist: integer = boolean [at 10]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.

select (1, 2) = (1, 2), (1, 2) <> (1, 3), (1, 2) in ((1, 2), (3, 4)), (1, null) = (1, 2), (1, null) = (2, 2);
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|t|t|NULL|f

select (1, 2) = (1, 2, 3);
----
ERROR 42601: unequal number of entries in row expressions [at 15]

select 'abc' like 'a%', 'abc' like '_b_', 'abc' not like '%d', 'ABC' ilike 'abc', 'a%c' like 'a\%c';
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|t|t|t|t

select 'abc' like 'a\';
----
ERROR 22025: LIKE pattern must not end with escape character

select 'a!%' like 'a!!!%' escape '!', 'a%' like 'a%' escape '';
----
?column?:bool|?column?:bool
t|t

select 'abc' like 'abc' escape 'xx';
----
ERROR 22025: invalid escape string
HINT: Escape string must be empty or one character.

select 1 like 'a';
----
ERROR 42883: operator does not exist: integer ~~ unknown [at 10]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.

select 'ä' like '_', 'äb' like 'ä%', '' like '%', '' like '';
----
?column?:bool|?column?:bool|?column?:bool|?column?:bool
t|t|t|t

select case when 1 = 1 then 'a' else 'b' end, case 2 when 1 then 'x' when 2 then 'y' end, case when false then 1 end;
----
case:text|case:text|case:int4
a|y|NULL

select case when true then 1 else 'x' end;
----
ERROR 22P02: invalid input syntax for type integer: "x" [at 35]

select case when 1 then 2 end;
----
ERROR 42804: argument of CASE/WHEN must be type boolean, not type integer [at 18]

select case when true then 1 when false then 2.5::float8 end;
----
case:float8
1

select case when true then 1 else 'a'::text end;
----
ERROR 42804: CASE types text and integer cannot be matched [at 28]

select case 1 when 'x' then 1 end;
----
ERROR 22P02: invalid input syntax for type integer: "x" [at 20]

select coalesce(null, 1, 2), coalesce(null, null), coalesce('a', 'b');
----
coalesce:int4|coalesce:text|coalesce:text
1|NULL|a

select coalesce(1, 'x');
----
ERROR 22P02: invalid input syntax for type integer: "x" [at 20]

select coalesce(1, true);
----
ERROR 42804: COALESCE types integer and boolean cannot be matched [at 20]

select nullif(1, 1), nullif(1, 2), nullif('a', 'b');
----
nullif:int4|nullif:int4|nullif:text
NULL|1|a

select nullif(1, true);
----
ERROR 42883: operator does not exist: integer = boolean [at 8]
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.

select greatest(1, 3, 2), least(3, 1, 2), greatest(null, 1), least(null, null), greatest('a', 'b');
----
greatest:int4|least:int4|greatest:int4|least:text|greatest:text
3|1|1|NULL|b

select 1::int8 = 1::int2, 1.5::float8 > 1;
----
?column?:bool|?column?:bool
t|t

select '2024-01-01'::timestamptz < '2024-01-02';
----
?column?:bool
t

select now() > '2000-01-01';
----
?column?:bool
t

select 'a' collate "C" < 'b';
----
?column?:bool
t

select 'a' collate nosuch;
----
ERROR 42704: collation "nosuch" for encoding "UTF8" does not exist [at 12]

select (1 + 2) * 3, 1 + 2 * 3, - 2 ^ 2, not true and false;
----
?column?:int4|?column?:int4|?column?:float8|?column?:bool
9|7|4|f

select 1 < 2 = true;
----
ERROR 42601: syntax error at or near "=" [at 14]

select 10 - 3 - 2, 100 / 10 / 2;
----
?column?:int4|?column?:int4
5|5

# A subscript is any expression.
select (array[1,2,3])[1 << 1], (array[1,2,3])[1 | 2], (array[1,2,3])[1 << null];
select (array[1,2,3])[1 << 0 : 1 | 2], (array[1,2,3])[2::int : 3::int], (array[1,2,3])[: 1 << 1];
select ('{"ab": 1}'::jsonb)['a' || 'b'], array[1 << 2, 5 # 1], (array['a', 'b'])[length('x' || 'y')];
select (array[1,2,3])[2 > 1 and true];
----
array:int4|array:int4|array:int4
2|3|NULL
array:_int4|array:_int4|array:_int4
{1,2,3}|{2,3}|{1,2}
jsonb:jsonb|array:_int4|array:text
1|{4,4}|b
ERROR 42804: array subscript must have type integer [at 23]
