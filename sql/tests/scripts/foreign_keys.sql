# What a foreign key demands.
create table p (id int primary key, x int unique, y text);
create table c (id int primary key, p int references p, px int references p (x) on delete cascade on update cascade);
insert into c values (1, 5, null);
insert into p values (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c');
insert into c values (1, 1, null), (2, null, 2), (3, null, null);
insert into c values (4, 1, 9);
update c set p = 9 where id = 1;
update c set p = 2 where id = 1;
delete from p where id = 2;
update p set id = 7 where id = 2;
update p set y = 'bb' where id = 2;
update p set x = 22 where x = 2;
select * from c order by id;
delete from p where id in (1, 3);
delete from c where p = 2;
delete from p where id = 2;
select * from c order by id;
select * from p;
----
CREATE TABLE
CREATE TABLE
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_p_fkey"
DETAIL: Key (p)=(5) is not present in table "p".
INSERT 0 3
INSERT 0 3
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_px_fkey"
DETAIL: Key (px)=(9) is not present in table "p".
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_p_fkey"
DETAIL: Key (p)=(9) is not present in table "p".
UPDATE 1
ERROR 23503: update or delete on table "p" violates foreign key constraint "c_p_fkey" on table "c"
DETAIL: Key (id)=(2) is still referenced from table "c".
ERROR 23503: update or delete on table "p" violates foreign key constraint "c_p_fkey" on table "c"
DETAIL: Key (id)=(2) is still referenced from table "c".
UPDATE 1
UPDATE 1
id:int4|p:int4|px:int4
1|2|NULL
2|NULL|22
3|NULL|NULL
DELETE 2
DELETE 1
DELETE 1
id:int4|p:int4|px:int4
3|NULL|NULL
id:int4|x:int4|y:text

# The actions.
create table q (a int, b int, primary key (a, b));
insert into q select i, i from generate_series(0, 6) as i;
create table q_null (id int primary key, a int, b int, foreign key (a, b) references q on delete set null on update set null);
create table q_default (id int primary key, a int default 0, b int default 0, foreign key (a, b) references q on delete set default on update set default);
create table q_cascade (a int, b int, foreign key (a, b) references q on delete cascade on update cascade);
create table q_restrict (a int, b int, foreign key (a, b) references q on delete restrict on update restrict);
create table q_no (a int, b int, foreign key (b, a) references q (b, a) on delete no action on update no action);
insert into q_null values (1, 1, 1), (2, 2, 2);
insert into q_default values (1, 1, 1), (2, 2, 2);
insert into q_cascade values (1, 1), (2, 2), (1, 1);
insert into q_restrict values (3, 3);
insert into q_no values (4, 4);
delete from q where a = 1;
update q set a = 20 where a = 2;
delete from q where a = 3;
update q set b = 30 where a = 3;
delete from q where a = 4;
update q set b = 40 where a = 4;
select * from q order by a;
select * from q_null order by id;
select * from q_default order by id;
select * from q_cascade;
delete from q where a = 0;
update q_default set a = default, b = default;
----
CREATE TABLE
INSERT 0 7
CREATE TABLE
CREATE TABLE
CREATE TABLE
CREATE TABLE
CREATE TABLE
INSERT 0 2
INSERT 0 2
INSERT 0 3
INSERT 0 1
INSERT 0 1
DELETE 1
UPDATE 1
ERROR 23503: update or delete on table "q" violates foreign key constraint "q_restrict_a_b_fkey" on table "q_restrict"
DETAIL: Key (a, b)=(3, 3) is still referenced from table "q_restrict".
ERROR 23503: update or delete on table "q" violates foreign key constraint "q_restrict_a_b_fkey" on table "q_restrict"
DETAIL: Key (a, b)=(3, 3) is still referenced from table "q_restrict".
ERROR 23503: update or delete on table "q" violates foreign key constraint "q_no_b_a_fkey" on table "q_no"
DETAIL: Key (b, a)=(4, 4) is still referenced from table "q_no".
ERROR 23503: update or delete on table "q" violates foreign key constraint "q_no_b_a_fkey" on table "q_no"
DETAIL: Key (b, a)=(4, 4) is still referenced from table "q_no".
a:int4|b:int4
0|0
3|3
4|4
5|5
6|6
20|2
id:int4|a:int4|b:int4
1|NULL|NULL
2|NULL|NULL
id:int4|a:int4|b:int4
1|0|0
2|0|0
a:int4|b:int4
20|2
ERROR 23503: update or delete on table "q" violates foreign key constraint "q_default_a_b_fkey" on table "q_default"
DETAIL: Key (a, b)=(0, 0) is still referenced from table "q_default".
UPDATE 2

# MATCH FULL and MATCH SIMPLE.
create table mf (a int, b int, foreign key (a, b) references q match full);
create table ms (a int, b int, foreign key (a, b) references q match simple);
insert into mf values (null, null), (5, 5);
insert into mf values (5, null);
insert into mf values (5, 4);
insert into ms values (5, null), (77, null), (null, null);
insert into ms values (5, 4);
update mf set b = null where a = 5;
create table mp (a int, b int, foreign key (a, b) references q match partial);
----
CREATE TABLE
CREATE TABLE
INSERT 0 2
ERROR 23503: insert or update on table "mf" violates foreign key constraint "mf_a_b_fkey"
DETAIL: MATCH FULL does not allow mixing of null and nonnull key values.
ERROR 23503: insert or update on table "mf" violates foreign key constraint "mf_a_b_fkey"
DETAIL: Key (a, b)=(5, 4) is not present in table "q".
INSERT 0 3
ERROR 23503: insert or update on table "ms" violates foreign key constraint "ms_a_b_fkey"
DETAIL: Key (a, b)=(5, 4) is not present in table "q".
ERROR 23503: insert or update on table "mf" violates foreign key constraint "mf_a_b_fkey"
DETAIL: MATCH FULL does not allow mixing of null and nonnull key values.
ERROR 0A000: MATCH PARTIAL not yet implemented [at 64]

# A table that refers to itself.
create table tree (id int primary key, up int references tree on delete cascade, name text);
insert into tree values (1, 2, 'a'), (2, 3, 'b'), (3, null, 'root'), (4, 3, 'd'), (5, 5, 'loop');
insert into tree values (6, 7, 'x');
update tree set id = 30 where id = 3;
update tree set up = 9 where id = 1;
delete from tree where id = 3;
select * from tree order by id;
update tree set id = id + 1, up = up + 1;
select * from tree;
delete from tree;
----
CREATE TABLE
INSERT 0 5
ERROR 23503: insert or update on table "tree" violates foreign key constraint "tree_up_fkey"
DETAIL: Key (up)=(7) is not present in table "tree".
ERROR 23503: update or delete on table "tree" violates foreign key constraint "tree_up_fkey" on table "tree"
DETAIL: Key (id)=(3) is still referenced from table "tree".
ERROR 23503: insert or update on table "tree" violates foreign key constraint "tree_up_fkey"
DETAIL: Key (up)=(9) is not present in table "tree".
DELETE 1
id:int4|up:int4|name:text
5|5|loop
UPDATE 1
id:int4|up:int4|name:text
6|6|loop
DELETE 1

# A chain of actions.
create table l1 (id int primary key);
create table l2 (id int primary key references l1 on delete cascade on update cascade);
create table l3 (id int primary key, l2 int not null references l2 on delete cascade on update cascade);
create table l4 (l3 int references l3 on delete set null);
insert into l1 select generate_series(1, 5);
insert into l2 select id from l1;
insert into l3 select id * 10, id from l2;
insert into l4 select id from l3;
delete from l1 where id < 3;
update l1 set id = id + 100 where id = 3;
select * from l3 order by id;
select * from l4 order by l3;
create table l5 (l1 int references l1);
insert into l5 values (4);
delete from l1;
select count(*) from l1;
delete from l1 using l3 where l3.l2 = l1.id and l3.id = 50;
select count(*) from l2;
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
CREATE TABLE
INSERT 0 5
INSERT 0 5
INSERT 0 5
INSERT 0 5
DELETE 2
UPDATE 1
id:int4|l2:int4
30|103
40|4
50|5
l3:int4
30
40
50
NULL
NULL
CREATE TABLE
INSERT 0 1
ERROR 23503: update or delete on table "l1" violates foreign key constraint "l5_l1_fkey" on table "l5"
DETAIL: Key (id)=(4) is still referenced from table "l5".
count:int8
3
DELETE 1
count:int8
2

# What CREATE TABLE refuses.
create table e (a text references p);
create table e (a int references p (zz));
create table e (a int references nope);
create table e (a int references c (p));
create table e (a int, foreign key (zz) references p);
create table e (a int, b int, foreign key (a, b) references p);
create table e (a int, b int, foreign key (a, b) references p (id));
create table e (a int, b int, foreign key (a, b) references p (id, x));
create table nopk (a int);
create table e (a int references nopk);
create table later (a int references p initially deferred);
create table e (a int references p deferrable initially immediate, b bigint references p, c smallint references p, constraint e_a_fkey foreign key (b) references p (id));
create table e (a int references p deferrable initially immediate, b bigint references p, c smallint references p, d numeric references p);
create table e (a int references p deferrable initially immediate, b bigint references p, c smallint references p);
create table e2 (a int references p, b int references p, foreign key (a) references p (x), c int constraint named references p);
insert into p values (11, 11);
insert into e values (11, 11, 11);
insert into e values (11, 5000000000, 11);
insert into e2 values (11, 11, 12);
delete from p where id = 11;
----
ERROR 42804: foreign key constraint "e_a_fkey" cannot be implemented
DETAIL: Key columns "a" and "id" are of incompatible types: text and integer.
ERROR 42703: column "zz" referenced in foreign key constraint does not exist
ERROR 42P01: relation "nope" does not exist
ERROR 42830: there is no unique constraint matching given keys for referenced table "c"
ERROR 42703: column "zz" referenced in foreign key constraint does not exist
ERROR 42830: number of referencing and referenced columns for foreign key disagree
ERROR 42830: number of referencing and referenced columns for foreign key disagree
ERROR 42830: there is no unique constraint matching given keys for referenced table "p"
CREATE TABLE
ERROR 42704: there is no primary key for referenced table "nopk"
ERROR 0A000: INITIALLY DEFERRED is not supported yet [at 38]
ERROR 42710: constraint "e_a_fkey" for relation "e" already exists
ERROR 42804: foreign key constraint "e_d_fkey" cannot be implemented
DETAIL: Key columns "d" and "id" are of incompatible types: numeric and integer.
CREATE TABLE
CREATE TABLE
INSERT 0 1
INSERT 0 1
ERROR 23503: insert or update on table "e" violates foreign key constraint "e_b_fkey"
DETAIL: Key (b)=(5000000000) is not present in table "p".
ERROR 23503: insert or update on table "e2" violates foreign key constraint "named"
DETAIL: Key (c)=(12) is not present in table "p".
ERROR 23503: update or delete on table "p" violates foreign key constraint "e_a_fkey" on table "e"
DETAIL: Key (id)=(11) is still referenced from table "e".

# ALTER TABLE.
alter table e drop constraint e_a_fkey, drop constraint e_b_fkey;
alter table e drop constraint e_c_fkey;
insert into e values (99, 99, 99);
alter table e add foreign key (a) references p;
delete from e where a = 99;
alter table e add foreign key (a) references p, add constraint eb foreign key (b) references p (x);
insert into e values (99, 11, 1);
alter table p drop constraint p_x_key;
alter table p drop column x;
alter table p drop constraint p_x_key cascade;
insert into e values (11, 12, 1);
alter table p alter id type bigint;
alter table p alter id type text;
insert into e values (12, 12, 1);
alter table p rename id to pid;
alter table p rename to pp;
insert into e values (12, 12, 1);
delete from pp where pid = 11;
alter table e rename a to aa;
alter table e rename constraint e_a_fkey to e_fk;
insert into e values (12, 12, 1);
alter table e drop column aa;
alter table e2 drop column a, drop column b, drop column c;
delete from pp where pid = 11;
----
ALTER TABLE
ALTER TABLE
INSERT 0 1
ERROR 23503: insert or update on table "e" violates foreign key constraint "e_a_fkey"
DETAIL: Key (a)=(99) is not present in table "p".
DELETE 1
ALTER TABLE
ERROR 23503: insert or update on table "e" violates foreign key constraint "e_a_fkey"
DETAIL: Key (a)=(99) is not present in table "p".
ERROR 2BP01: cannot drop constraint p_x_key on table p because other objects depend on it
DETAIL: constraint c_px_fkey on table c depends on index p_x_key
constraint eb on table e depends on index p_x_key
constraint e2_a_fkey1 on table e2 depends on index p_x_key
HINT: Use DROP ... CASCADE to drop the dependent objects too.
ERROR 2BP01: cannot drop column x of table p because other objects depend on it
DETAIL: constraint c_px_fkey on table c depends on column x of table p
constraint eb on table e depends on column x of table p
constraint e2_a_fkey1 on table e2 depends on column x of table p
HINT: Use DROP ... CASCADE to drop the dependent objects too.
NOTICE 00000: drop cascades to 3 other objects
ALTER TABLE
INSERT 0 1
ALTER TABLE
ERROR 42804: foreign key constraint "c_p_fkey" cannot be implemented
DETAIL: Key columns "p" and "id" are of incompatible types: integer and text.
ERROR 23503: insert or update on table "e" violates foreign key constraint "e_a_fkey"
DETAIL: Key (a)=(12) is not present in table "p".
ALTER TABLE
ALTER TABLE
ERROR 23503: insert or update on table "e" violates foreign key constraint "e_a_fkey"
DETAIL: Key (a)=(12) is not present in table "pp".
ERROR 23503: update or delete on table "pp" violates foreign key constraint "e_a_fkey" on table "e"
DETAIL: Key (pid)=(11) is still referenced from table "e".
ALTER TABLE
ALTER TABLE
ERROR 23503: insert or update on table "e" violates foreign key constraint "e_fk"
DETAIL: Key (aa)=(12) is not present in table "pp".
ALTER TABLE
ALTER TABLE
DELETE 1

# DROP TABLE.
create table dp (id int primary key);
create table dc (dp int references dp, dq int references dp);
create table dd (dp int references dp);
drop table dp;
drop table dp, dd;
drop table dp, dc, dd;
create table dp (id int primary key);
create table dc (dp int references dp, dq int references dp);
drop table dp cascade;
insert into dc values (1, 1);
create table dp (id int primary key);
create table dd (dp int references dp);
drop table dd;
drop table dp;
----
CREATE TABLE
CREATE TABLE
CREATE TABLE
ERROR 2BP01: cannot drop table dp because other objects depend on it
DETAIL: constraint dc_dp_fkey on table dc depends on table dp
constraint dc_dq_fkey on table dc depends on table dp
constraint dd_dp_fkey on table dd depends on table dp
HINT: Use DROP ... CASCADE to drop the dependent objects too.
ERROR 2BP01: cannot drop desired object(s) because other objects depend on them
DETAIL: constraint dc_dp_fkey on table dc depends on table dp
constraint dc_dq_fkey on table dc depends on table dp
HINT: Use DROP ... CASCADE to drop the dependent objects too.
DROP TABLE
CREATE TABLE
CREATE TABLE
NOTICE 00000: drop cascades to 2 other objects
DROP TABLE
INSERT 0 1
CREATE TABLE
CREATE TABLE
DROP TABLE
DROP TABLE

# COPY and INSERT ... SELECT.
create table cp (id int primary key);
create table cc (id int references cp, up int);
insert into cp select generate_series(1, 1000);
insert into cc select id, id from cp;
insert into cc select id + 1, id from cp;
insert into cc values (1000, 1), (1001, 2), (1, 3);
select count(*) from cc;
insert into cc values (5, 5) on conflict do nothing;
insert into cp values (5) on conflict (id) do update set id = 2000;
insert into cc (id) values (1001) on conflict do nothing;
----
CREATE TABLE
CREATE TABLE
INSERT 0 1000
INSERT 0 1000
ERROR 23503: insert or update on table "cc" violates foreign key constraint "cc_id_fkey"
DETAIL: Key (id)=(1001) is not present in table "cp".
ERROR 23503: insert or update on table "cc" violates foreign key constraint "cc_id_fkey"
DETAIL: Key (id)=(1001) is not present in table "cp".
count:int8
1000
INSERT 0 1
ERROR 23503: update or delete on table "cp" violates foreign key constraint "cc_id_fkey" on table "cc"
DETAIL: Key (id)=(5) is still referenced from table "cc".
ERROR 23503: insert or update on table "cc" violates foreign key constraint "cc_id_fkey"
DETAIL: Key (id)=(1001) is not present in table "cp".

# TRUNCATE.
truncate cp;
truncate cp, cc;
insert into cp values (1);
insert into cc values (1, 1);
truncate table cp cascade;
select count(*) from cc;
----
ERROR 0A000: cannot truncate a table referenced in a foreign key constraint
DETAIL: Table "cc" references "cp".
HINT: Truncate table "cc" at the same time, or use TRUNCATE ... CASCADE.
TRUNCATE TABLE
INSERT 0 1
INSERT 0 1
NOTICE 00000: truncate cascades to table "cc"
TRUNCATE TABLE
count:int8
0

# A unique index is enough to refer to.
create table ui (a int, b int);
create unique index ui_ab on ui (b, a);
create table uc (x int, y int, foreign key (x, y) references ui (a, b) on update cascade);
create unique index ui_part on ui (a) where b > 0;
create table ud (a int references ui (a));
insert into ui values (1, 2), (3, 4);
insert into uc values (2, 1);
insert into uc values (1, 2), (3, null);
drop index ui_ab;
update ui set b = 20 where a = 1;
select * from uc order by x;
update ui set a = null where a = 3;
delete from ui where a = 1;
drop table uc;
drop index ui_ab;
----
CREATE TABLE
CREATE INDEX
CREATE TABLE
CREATE INDEX
ERROR 42830: there is no unique constraint matching given keys for referenced table "ui"
INSERT 0 2
ERROR 23503: insert or update on table "uc" violates foreign key constraint "uc_x_y_fkey"
DETAIL: Key (x, y)=(2, 1) is not present in table "ui".
INSERT 0 2
ERROR 2BP01: cannot drop index ui_ab because other objects depend on it
DETAIL: constraint uc_x_y_fkey on table uc depends on index ui_ab
HINT: Use DROP ... CASCADE to drop the dependent objects too.
UPDATE 1
x:int4|y:int4
1|20
3|NULL
UPDATE 1
ERROR 23503: update or delete on table "ui" violates foreign key constraint "uc_x_y_fkey" on table "uc"
DETAIL: Key (a, b)=(1, 20) is still referenced from table "uc".
DROP TABLE
DROP INDEX

# Statements of a transaction, and savepoints.
create table tp (id int primary key);
create table tc (p int references tp);
begin;
insert into tp values (1);
insert into tc values (1);
savepoint s;
delete from tp;
rollback to s;
delete from tc;
delete from tp;
rollback to s;
commit;
select (select count(*) from tp), (select count(*) from tc);
begin;
delete from tc;
delete from tp;
insert into tp values (1);
insert into tc values (1);
commit;
select * from tc;
----
CREATE TABLE
CREATE TABLE
BEGIN
INSERT 0 1
INSERT 0 1
SAVEPOINT
ERROR 23503: update or delete on table "tp" violates foreign key constraint "tc_p_fkey" on table "tc"
DETAIL: Key (id)=(1) is still referenced from table "tc".
ROLLBACK
DELETE 1
DELETE 1
ROLLBACK
COMMIT
count:int8|count:int8
1|1
BEGIN
DELETE 1
DELETE 1
INSERT 0 1
INSERT 0 1
COMMIT
p:int4
1

# Locks: a child waits for the end of the parent's transaction, and the other way round.
\session a
begin;
delete from tc;
delete from tp where id = 1;
\session b
\waits
insert into tc values (1);
\session a
commit;
\session b
\answer
insert into tp values (2);
begin;
insert into tc values (2);
\session a
\waits
delete from tp where id = 2;
\session b
commit;
\session a
\answer
update tp set id = id;
select * from tc;
----
BEGIN
DELETE 1
DELETE 1
COMMIT
ERROR 23503: insert or update on table "tc" violates foreign key constraint "tc_p_fkey"
DETAIL: Key (p)=(1) is not present in table "tp".
INSERT 0 1
BEGIN
INSERT 0 1
COMMIT
ERROR 23503: update or delete on table "tp" violates foreign key constraint "tc_p_fkey" on table "tc"
DETAIL: Key (id)=(2) is still referenced from table "tc".
UPDATE 1
p:int4
2

# SET DEFAULT draws from sequences.
create table np (id int primary key);
insert into np select generate_series(1, 12);
create sequence ns;
create table nc (id int primary key, x int default nextval('ns') references np on delete set default on update set default);
create table ni (id int primary key, x int generated by default as identity references np on delete set default);
create table ng (id int primary key, x int generated always as identity references np on delete set default);
create table ne (id int primary key, x serial references np on delete set default);
insert into nc values (1, 7), (2, 7), (3, 8);
insert into ni values (1, 9);
insert into ne values (1, 10);
insert into ng overriding system value values (1, 11);
delete from np where id = 7;
update np set id = 20 where id = 8;
select * from nc order by id;
delete from np where id between 9 and 11;
select * from ni;
select * from ne;
select * from ng;
with gone as (delete from np where id = 3 returning id) select * from gone;
select * from nc order by id;
select currval('ns'), currval('ne_x_seq');
alter sequence ns restart 100;
delete from np where id = 4;
select * from nc order by id;
----
CREATE TABLE
INSERT 0 12
CREATE SEQUENCE
CREATE TABLE
CREATE TABLE
CREATE TABLE
CREATE TABLE
INSERT 0 3
INSERT 0 1
INSERT 0 1
INSERT 0 1
DELETE 1
UPDATE 1
id:int4|x:int4
1|1
2|2
3|3
DELETE 3
id:int4|x:int4
1|1
id:int4|x:int4
1|1
id:int4|x:int4
1|1
id:int4
3
id:int4|x:int4
1|1
2|2
3|4
currval:int8|currval:int8
4|1
ALTER SEQUENCE
ERROR 23503: insert or update on table "nc" violates foreign key constraint "nc_x_fkey"
DETAIL: Key (x)=(100) is not present in table "np".
id:int4|x:int4
1|1
2|2
3|4
