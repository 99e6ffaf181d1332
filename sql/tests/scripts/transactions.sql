# Transactions see their own changes, and no changes committed after their snapshot.
create table t (id int primary key, v text);
insert into t values (1, 'one');
----
CREATE TABLE
INSERT 0 1

\session a
begin isolation level repeatable read;
select * from t;
----
BEGIN
id:int4|v:text
1|one

\session b
insert into t values (2, 'two');
update t set v = 'ONE' where id = 1;
----
INSERT 0 1
UPDATE 1

\session a
select * from t;
insert into t values (3, 'three');
select * from t;
commit;
select * from t;
----
id:int4|v:text
1|one
INSERT 0 1
id:int4|v:text
1|one
3|three
COMMIT
id:int4|v:text
1|ONE
2|two
3|three

# First committer wins.
\session a
begin isolation level repeatable read;
update t set v = 'a' where id = 1;
----
BEGIN
UPDATE 1

\session b
begin isolation level repeatable read;
\waits
update t set v = 'b' where id = 1;
----
BEGIN

\session a
commit;
----
COMMIT

\session b
\answer
rollback;
select * from t where id = 1;
----
ERROR 40001: could not serialize access due to concurrent update
DETAIL: write conflict on "t\x00\x00@\x00r\x81\x01": committed at 100000.*, after 100000.*
HINT: The transaction might succeed if retried.
ROLLBACK
id:int4|v:text
1|a

# In an explicit transaction the statement finds a duplicate key.
begin;
insert into t values (1, 'dup');
select 1;
commit;
----
BEGIN
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(1) already exists.
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block
ROLLBACK

# An INSERT waits for one of the same key.
\session a
begin;
insert into t values (9, 'a');
----
BEGIN
INSERT 0 1

\session b
\waits
insert into t values (9, 'b');
----

\session a
commit;
----
COMMIT

\session b
\answer
select * from t where id = 9;
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(9) already exists.
id:int4|v:text
9|a

# A failed statement fails the transaction. Nothing of it is kept.
\session c
begin;
insert into t values (10, 'ten');
insert into t values (11, 'eleven'), (1, 'dup');
select count(*) from t;
rollback;
select count(*) from t;
----
BEGIN
INSERT 0 1
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(1) already exists.
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block
ROLLBACK
count:int8
4

# Rows can exchange their keys.
create table s (id int primary key, v text);
insert into s values (1, 'a'), (2, 'b');
update s set id = 3 - id;
select * from s;
----
CREATE TABLE
INSERT 0 2
UPDATE 2
id:int4|v:text
1|b
2|a

# Deleting and inserting the same key.
begin;
delete from s where id = 1;
insert into s values (1, 'again');
select * from s;
commit;
select * from s;
----
BEGIN
DELETE 1
INSERT 0 1
id:int4|v:text
1|again
2|a
COMMIT
id:int4|v:text
1|again
2|a

# Two transactions create the same table: one wins.
\session a
begin;
create table same (a int);
----
BEGIN
CREATE TABLE

\session b
begin;
create table same (b int);
commit;
----
BEGIN
CREATE TABLE
COMMIT

\session a
commit;
create table same (a int);
select * from same;
----
ERROR 40001: could not serialize access due to concurrent update
DETAIL: write conflict on "mn\x00\x00\x08\x98same": committed at 100000.*, after 100000.*
HINT: The transaction might succeed if retried.
ERROR 42P07: relation "same" already exists
b:int4

# A transaction sees the schema of its snapshot.
\session a
create table old (a int primary key);
insert into old values (1);
begin isolation level repeatable read;
select * from old;
----
CREATE TABLE
INSERT 0 1
BEGIN
a:int4
1

\session b
drop table old;
create table old (b text, c int);
insert into old values ('x', 2);
----
DROP TABLE
CREATE TABLE
INSERT 0 1

\session a
select * from old;
commit;
select * from old;
----
a:int4
1
COMMIT
b:text|c:int4
x|2

# Writes to a table that was dropped meanwhile would be lost. The commit fails if its node knows of the drop.
create table gone (a int primary key);
begin;
insert into gone values (1);
----
CREATE TABLE
BEGIN
INSERT 0 1

\session b
drop table gone;
create table gone (a int primary key);
----
DROP TABLE
CREATE TABLE

\session a
commit;
select * from gone;
----
ERROR 40001: could not serialize access due to concurrent update
DETAIL: A table that it uses was dropped or truncated.
a:int4

# A writer waits for SELECT FOR UPDATE.
insert into gone values (5);
begin;
select * from gone where a = 5 for update;
----
INSERT 0 1
BEGIN
a:int4
5

\session b
\waits
delete from gone where a = 5;
----

\session a
commit;
----
COMMIT

\session b
\answer
----
DELETE 1

\session a
select * from gone;
----
a:int4

# TRUNCATE and DROP can be rolled back.
create table keep (a int primary key);
insert into keep values (1), (2);
begin;
truncate keep;
select count(*) from keep;
insert into keep values (3);
select * from keep;
rollback;
select * from keep;
begin;
drop table keep;
select * from keep;
rollback;
select * from keep;
----
CREATE TABLE
INSERT 0 2
BEGIN
TRUNCATE TABLE
count:int8
0
INSERT 0 1
a:int4
3
ROLLBACK
a:int4
1
2
BEGIN
DROP TABLE
ERROR 42P01: relation "keep" does not exist [at 15]
ROLLBACK
a:int4
1
2
