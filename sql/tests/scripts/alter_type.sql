# ALTER COLUMN TYPE checks what other values may violate: NOT NULL, CHECK, FOREIGN KEY.
create table a (id int primary key, n numeric not null check (n > 0));
insert into a values (1, 0.3);
alter table a alter n type int;
create table b (id int primary key, t text not null);
insert into b values (1, '');
alter table b alter t type int using nullif(t, '')::int;
alter table b alter t type text using null;
alter table b alter id type int using null;
alter table b alter t type varchar(10) using t || 'x';
select * from b;
create table e (a text check (a::int > 0));
insert into e values ('1');
alter table e alter a type text using 'x';
alter table e alter a type text using '-1';
create table g (a int, b int generated always as (a * 2) stored not null check (b < 10));
insert into g values (4);
alter table g alter b type bigint;
select * from g;
----
CREATE TABLE
INSERT 0 1
ERROR 23514: check constraint "a_n_check" of relation "a" is violated by some row
CREATE TABLE
INSERT 0 1
ERROR 23502: column "t" of relation "b" contains null values
ERROR 23502: column "t" of relation "b" contains null values
ERROR 23502: column "id" of relation "b" contains null values
ALTER TABLE
id:int4|t:varchar
1|x
CREATE TABLE
INSERT 0 1
ERROR 22P02: invalid input syntax for type integer: "x"
ERROR 23514: check constraint "e_a_check" of relation "e" is violated by some row
CREATE TABLE
INSERT 0 1
ALTER TABLE
a:int4|b:int8
4|8

create table p (id int primary key, x int unique);
create table c (id int primary key, p int references p, x int references p (x));
insert into p values (1, 11), (2, 12);
insert into c values (10, 1, 11), (20, null, null);
alter table c alter p type int using id;
alter table c alter p type bigint using p + 1;
alter table p alter id type bigint using id + 100;
alter table p alter x type int using -x;
alter table p alter id type bigint using 3 - id;
alter table p alter id type bigint using id + 100, alter x type bigint using -x;
alter table p alter x type bigint, alter id type int;
select * from p order by id;
select * from c order by id;
insert into c values (30, 3, null);
----
CREATE TABLE
CREATE TABLE
INSERT 0 2
INSERT 0 2
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_p_fkey"
DETAIL: Key (p)=(10) is not present in table "p".
ALTER TABLE
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_p_fkey"
DETAIL: Key (p)=(2) is not present in table "p".
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_x_fkey"
DETAIL: Key (x)=(11) is not present in table "p".
ALTER TABLE
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_p_fkey"
DETAIL: Key (p)=(2) is not present in table "p".
ALTER TABLE
id:int4|x:int8
1|12
2|11
id:int4|p:int8|x:int4
10|2|11
20|NULL|NULL
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_p_fkey"
DETAIL: Key (p)=(3) is not present in table "p".

# A table that refers to itself.
create table s (id int primary key, up int references s);
insert into s values (1, null), (2, 1), (3, 2);
alter table s alter id type int using id + 1;
alter table s alter up type int using up + 5;
alter table s alter id type bigint using id + 1, alter up type int using up + 1;
select * from s order by id;
insert into s values (5, 9);
begin;
insert into s values (7, 4);
alter table s alter id type int using id * 2;
rollback;
begin;
insert into s values (7, 4);
alter table s alter id type int using id * 2, alter up type bigint using up * 2;
select * from s order by id;
commit;
----
CREATE TABLE
INSERT 0 3
ERROR 23503: insert or update on table "s" violates foreign key constraint "s_up_fkey"
DETAIL: Key (up)=(1) is not present in table "s".
ERROR 23503: insert or update on table "s" violates foreign key constraint "s_up_fkey"
DETAIL: Key (up)=(6) is not present in table "s".
ALTER TABLE
id:int8|up:int4
2|NULL
3|2
4|3
ERROR 23503: insert or update on table "s" violates foreign key constraint "s_up_fkey"
DETAIL: Key (up)=(9) is not present in table "s".
BEGIN
INSERT 0 1
ERROR 23503: insert or update on table "s" violates foreign key constraint "s_up_fkey"
DETAIL: Key (up)=(2) is not present in table "s".
ROLLBACK
BEGIN
INSERT 0 1
ALTER TABLE
id:int4|up:int8
4|NULL
6|4
8|6
14|8
COMMIT

# In the transaction that made the rows.
begin;
create table own (id int primary key);
create table child (own int references own);
insert into own values (1);
insert into child values (1);
alter table own alter id type bigint using id + 1;
rollback;
begin;
insert into p values (3, 13);
insert into c values (40, 3, 13);
alter table p alter id type bigint using case id when 3 then 4 else id end;
rollback;
begin isolation level repeatable read;
select count(*) from c;
alter table p alter id type bigint using id + 100;
rollback;
begin isolation level repeatable read;
select count(*) from c;
alter table p alter id type bigint;
insert into c values (50, 1, 12);
commit;
select * from c order by id;
----
BEGIN
CREATE TABLE
CREATE TABLE
INSERT 0 1
INSERT 0 1
ERROR 23503: insert or update on table "child" violates foreign key constraint "child_own_fkey"
DETAIL: Key (own)=(1) is not present in table "own".
ROLLBACK
BEGIN
INSERT 0 1
INSERT 0 1
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_p_fkey"
DETAIL: Key (p)=(3) is not present in table "p".
ROLLBACK
BEGIN
count:int8
2
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_p_fkey"
DETAIL: Key (p)=(2) is not present in table "p".
ROLLBACK
BEGIN
count:int8
2
ALTER TABLE
INSERT 0 1
COMMIT
id:int4|p:int8|x:int4
10|2|11
20|NULL|NULL
50|1|12

# A default is converted from its own type, not from that of the column.
create table d (n int not null default 3, t text default 'x', j jsonb default '{}', f numeric default 7);
alter table d alter n type text;
alter table d alter n type int using n::int;
alter table d alter t set default 9;
alter table d alter t type int using 0;
alter table d alter j type text;
alter table d alter j type json using j::json;
alter table d alter f type int, alter f set default 8.5;
alter table d alter f type text;
insert into d default values;
select * from d;
alter table d alter f type boolean using true;
alter table d alter f drop default, alter f type boolean using true;
create table dx (t text default 'x', s serial, i int default '5');
alter table dx alter t type int using 1;
alter table dx alter s type text, alter i type text;
insert into dx default values;
select * from dx;
----
CREATE TABLE
ALTER TABLE
ALTER TABLE
ALTER TABLE
ALTER TABLE
ALTER TABLE
ALTER TABLE
ALTER TABLE
ALTER TABLE
INSERT 0 1
n:int4|t:int4|j:json|f:text
3|9|{}|8.5
ERROR 42804: default for column "f" cannot be cast automatically to type boolean
ALTER TABLE
CREATE TABLE
ERROR 42804: default for column "t" cannot be cast automatically to type integer
ALTER TABLE
INSERT 0 1
t:text|s:text|i:text
x|1|5

# The expressions of indexes get new types, and must still follow from the row.
create table ix (id int primary key, a int, d date, ts timestamp, j jsonb);
insert into ix values (1, 7, '2024-01-01', '2024-01-01 20:00', '{"a":1}'), (2, 8, '2024-01-02', '2024-01-02 20:00', '{"a":2}');
create index ix_a on ix ((a * 2));
create unique index ix_u on ix ((id + a));
create index ix_d on ix ((d - date '2024-01-01'));
create index ix_ts on ix ((ts::date));
alter table ix alter a type numeric;
select id from ix where a * 2 = 14;
insert into ix (id, a) values (7, 1);
insert into ix (id, a) values (9, 1);
alter table ix alter d type timestamp;
select id from ix where d - date '2024-01-01' = interval '1 day';
select atttypid::regtype from pg_attribute where attrelid in ('ix_a'::regclass, 'ix_d'::regclass) order by attrelid;
alter table ix alter ts type timestamptz;
drop index ix_ts;
create index ix_p on ix (a) where ts::date = '2024-01-02';
alter table ix alter ts type timestamptz;
create index ix_j on ix ((j->'a'));
alter table ix alter j type json;
create index ix_plain on ix (j);
alter table ix alter j type json;
----
CREATE TABLE
INSERT 0 2
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE INDEX
ALTER TABLE
id:int4
1
ERROR 23505: duplicate key value violates unique constraint "ix_u"
DETAIL: Key ((id + a))=(8) already exists.
ERROR 23505: duplicate key value violates unique constraint "ix_u"
DETAIL: Key ((id + a))=(10) already exists.
ALTER TABLE
id:int4
2
atttypid:regtype
numeric
interval
ERROR 42P17: functions in index expression must be marked IMMUTABLE
DROP INDEX
CREATE INDEX
ERROR 42P17: functions in index predicate must be marked IMMUTABLE
CREATE INDEX
ERROR 42704: data type json has no default operator class for access method "btree"
HINT: You must specify an operator class for the index or define a default operator class for the data type.
CREATE INDEX
ERROR 42704: data type json has no default operator class for access method "btree"
HINT: You must specify an operator class for the index or define a default operator class for the data type.

# An identity column has a type of sequences.
create table idt (id int generated by default as identity);
alter table idt alter id type date;
alter table idt alter id type text;
----
CREATE TABLE
ERROR 22023: identity column type must be smallint, integer, or bigint
ERROR 22023: identity column type must be smallint, integer, or bigint
