# Hermitage at REPEATABLE READ: the anomalies that the level allows and those that it does not.
create table test (id int primary key, value int);
insert into test values (1, 10), (2, 20);
----
CREATE TABLE
INSERT 0 2

# G0: write cycles.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
update test set value = 11 where id = 1;
----
UPDATE 1

\session b
\waits
update test set value = 12 where id = 1;
----

\session a
update test set value = 21 where id = 2;
commit;
----
UPDATE 1
COMMIT

\session b
\answer
rollback;
----
ERROR 40001: could not serialize access due to concurrent update
DETAIL: write conflict on "t\x00\x00@\x00r\x81\x01": committed at 100000.*, after 100000.*
HINT: The transaction might succeed if retried.
ROLLBACK

\session a
select * from test;
----
id:int4|value:int4
1|11
2|21

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 2
DELETE 0
INSERT 0 0

# G1a: aborted reads.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
update test set value = 101 where id = 1;
----
UPDATE 1

\session b
select * from test;
----
id:int4|value:int4
1|10
2|20

\session a
rollback;
----
ROLLBACK

\session b
select * from test;
commit;
----
id:int4|value:int4
1|10
2|20
COMMIT

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 2
DELETE 0
INSERT 0 0

# G1b: intermediate reads.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
update test set value = 101 where id = 1;
----
UPDATE 1

\session b
select * from test;
----
id:int4|value:int4
1|10
2|20

\session a
update test set value = 11 where id = 1;
commit;
----
UPDATE 1
COMMIT

\session b
select * from test;
commit;
----
id:int4|value:int4
1|10
2|20
COMMIT

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 2
DELETE 0
INSERT 0 0

# G1c: circular information flow.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
update test set value = 11 where id = 1;
----
UPDATE 1

\session b
update test set value = 22 where id = 2;
----
UPDATE 1

\session a
select * from test where id = 2;
----
id:int4|value:int4
2|20

\session b
select * from test where id = 1;
----
id:int4|value:int4
1|10

\session a
commit;
----
COMMIT

\session b
commit;
----
COMMIT

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 2
DELETE 0
INSERT 0 0

# OTV: observed transaction vanishes.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session c
begin isolation level repeatable read;
----
BEGIN

\session a
update test set value = 11 where id = 1;
update test set value = 19 where id = 2;
----
UPDATE 1
UPDATE 1

\session b
\waits
update test set value = 12 where id = 1;
----

\session a
commit;
----
COMMIT

\session b
\answer
rollback;
----
ERROR 40001: could not serialize access due to concurrent update
DETAIL: write conflict on "t\x00\x00@\x00r\x81\x01": committed at 100000.*, after 100000.*
HINT: The transaction might succeed if retried.
ROLLBACK

\session c
select * from test;
commit;
----
id:int4|value:int4
1|11
2|19
COMMIT

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 2
DELETE 0
INSERT 0 0

# PMP: predicate-many-preceders.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
select * from test where value = 30;
----
id:int4|value:int4

\session b
insert into test values (3, 30);
commit;
----
INSERT 0 1
COMMIT

\session a
select * from test where value % 3 = 0;
commit;
----
id:int4|value:int4
COMMIT

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 3
DELETE 1
INSERT 0 0

# PMP with a write predicate.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
update test set value = value + 10;
----
UPDATE 2

\session b
select * from test where value = 20;
\waits
delete from test where value = 20;
----
id:int4|value:int4
2|20

\session a
commit;
----
COMMIT

\session b
\answer
rollback;
----
ERROR 40001: could not serialize access due to concurrent update
DETAIL: write conflict on "t\x00\x00@\x00r\x81\x02": committed at 100000.*, after 100000.*
HINT: The transaction might succeed if retried.
ROLLBACK

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 2
DELETE 0
INSERT 0 0

# P4: lost update.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
select * from test where id = 1;
----
id:int4|value:int4
1|10

\session b
select * from test where id = 1;
----
id:int4|value:int4
1|10

\session a
update test set value = 11 where id = 1;
----
UPDATE 1

\session b
\waits
update test set value = 11 where id = 1;
----

\session a
commit;
----
COMMIT

\session b
\answer
rollback;
----
ERROR 40001: could not serialize access due to concurrent update
DETAIL: write conflict on "t\x00\x00@\x00r\x81\x01": committed at 100000.*, after 100000.*
HINT: The transaction might succeed if retried.
ROLLBACK

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 2
DELETE 0
INSERT 0 0

# G-single: read skew.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
select * from test where id = 1;
----
id:int4|value:int4
1|10

\session b
select * from test where id = 1;
select * from test where id = 2;
update test set value = 12 where id = 1;
update test set value = 18 where id = 2;
commit;
----
id:int4|value:int4
1|10
id:int4|value:int4
2|20
UPDATE 1
UPDATE 1
COMMIT

\session a
select * from test where id = 2;
commit;
----
id:int4|value:int4
2|20
COMMIT

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 2
DELETE 0
INSERT 0 0

# G-single with predicate dependencies.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
select * from test where value % 5 = 0;
----
id:int4|value:int4
1|10
2|20

\session b
update test set value = 12 where value = 10;
commit;
----
UPDATE 1
COMMIT

\session a
select * from test where value % 3 = 0;
commit;
----
id:int4|value:int4
COMMIT

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 2
DELETE 0
INSERT 0 0

# G-single with a write predicate.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
select * from test where id = 1;
----
id:int4|value:int4
1|10

\session b
select * from test;
update test set value = 12 where id = 1;
update test set value = 18 where id = 2;
commit;
----
id:int4|value:int4
1|10
2|20
UPDATE 1
UPDATE 1
COMMIT

\session a
delete from test where value = 20;
rollback;
----
ERROR 40001: could not serialize access due to concurrent update
DETAIL: write conflict on "t\x00\x00@\x00r\x81\x02": committed at 100000.*, after 100000.*
HINT: The transaction might succeed if retried.
ROLLBACK

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 2
DELETE 0
INSERT 0 0

# G2-item: write skew.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
select * from test where id in (1, 2);
----
id:int4|value:int4
1|10
2|20

\session b
select * from test where id in (1, 2);
----
id:int4|value:int4
1|10
2|20

\session a
update test set value = 11 where id = 1;
----
UPDATE 1

\session b
update test set value = 21 where id = 2;
----
UPDATE 1

\session a
commit;
----
COMMIT

\session b
commit;
----
COMMIT

\session a
select * from test;
----
id:int4|value:int4
1|11
2|21

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 2
DELETE 0
INSERT 0 0

# G2: anti-dependency cycles.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
select * from test where value % 3 = 0;
----
id:int4|value:int4

\session b
select * from test where value % 3 = 0;
----
id:int4|value:int4

\session a
insert into test values (3, 30);
----
INSERT 0 1

\session b
insert into test values (4, 42);
----
INSERT 0 1

\session a
commit;
----
COMMIT

\session b
commit;
----
COMMIT

\session a
select * from test where value % 3 = 0;
----
id:int4|value:int4
3|30
4|42

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 4
DELETE 2
INSERT 0 0

# A row that was inserted under the statement is not seen.
\session a
begin isolation level repeatable read;
----
BEGIN

\session b
begin isolation level repeatable read;
----
BEGIN

\session a
insert into test values (3, 30);
----
INSERT 0 1

\session b
update test set value = value + 1;
----
UPDATE 2

\session a
commit;
----
COMMIT

\session b
select * from test;
commit;
----
id:int4|value:int4
1|11
2|21
COMMIT

\session main
update test set value = id * 10;
delete from test where id > 2;
insert into test values (1, 10), (2, 20) on conflict do nothing;
----
UPDATE 3
DELETE 1
INSERT 0 0
