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
ERROR 23505: duplicate key value violates unique constraint "s_pkey"
DETAIL: Key (id)=(2) already exists.
id:int4|v:text
1|a
2|b

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
2|b
COMMIT
id:int4|v:text
1|again
2|b

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

# All modes in one statement, with commas or without.
begin isolation level read committed read only deferrable;
show transaction_isolation;
show transaction_read_only;
show transaction_deferrable;
set transaction read write, not deferrable;
show transaction_read_only;
select current_setting('transaction_deferrable');
set transaction deferrable;
rollback;
start transaction read write, not deferrable;
commit;
start transaction isolation level repeatable read read only;
select current_setting('transaction_isolation'), current_setting('transaction_read_only');
rollback;
set transaction isolation level repeatable read read only;
----
BEGIN
transaction_isolation:text
read committed
SHOW
transaction_read_only:text
on
SHOW
transaction_deferrable:text
on
SHOW
SET
transaction_read_only:text
off
SHOW
current_setting:text
off
ERROR 25001: SET TRANSACTION [NOT] DEFERRABLE must be called before any query
ROLLBACK
START TRANSACTION
COMMIT
START TRANSACTION
current_setting:text|current_setting:text
repeatable read|on
ROLLBACK
WARNING 25P01: SET TRANSACTION can only be used in transaction blocks
SET

# A subtransaction may become read-only, until it is released. It changes nothing else.
begin;
savepoint a;
set transaction read only;
show transaction_read_only;
release a;
show transaction_read_only;
savepoint a;
set transaction isolation level repeatable read;
rollback to a;
set transaction not deferrable;
rollback;
begin read only;
savepoint a;
set transaction read write;
rollback;
----
BEGIN
SAVEPOINT
SET
transaction_read_only:text
on
SHOW
RELEASE
transaction_read_only:text
off
SHOW
SAVEPOINT
ERROR 25001: SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction
ROLLBACK
ERROR 25001: SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction
ROLLBACK
BEGIN
SAVEPOINT
ERROR 25001: cannot set transaction read-write mode inside a read-only transaction
ROLLBACK

# The defaults of the session.
set session characteristics as transaction isolation level repeatable read, read only, deferrable;
show default_transaction_isolation;
show transaction_isolation;
show transaction_deferrable;
begin;
show transaction_read_only;
show transaction_deferrable;
commit;
set session characteristics as transaction isolation level read committed read write not deferrable;
set default_transaction_isolation = 'foo';
set transaction_isolation = 'foo';
----
SET
default_transaction_isolation:text
repeatable read
SHOW
transaction_isolation:text
repeatable read
SHOW
transaction_deferrable:text
on
SHOW
BEGIN
transaction_read_only:text
on
SHOW
transaction_deferrable:text
on
SHOW
COMMIT
SET
ERROR 22023: invalid value for parameter "default_transaction_isolation": "foo"
HINT: Available values: serializable, repeatable read, read committed, read uncommitted.
ERROR 22023: invalid value for parameter "transaction_isolation": "foo"
HINT: Available values: serializable, repeatable read, read committed, read uncommitted.

# Settings that set the modes of the transaction.
begin;
select set_config('transaction_read_only', 'on', false);
show transaction_read_only;
select set_config('transaction_isolation', 'repeatable read', true);
rollback;
begin;
select 1;
begin isolation level repeatable read;
rollback;
begin;
select 1;
set transaction_deferrable = on;
rollback;
begin isolation level repeatable read;
reset transaction_isolation;
show transaction_isolation;
rollback;
reset transaction_isolation;
----
BEGIN
set_config:text
on
transaction_read_only:text
on
SHOW
ERROR 25001: SET TRANSACTION ISOLATION LEVEL must be called before any query
ROLLBACK
BEGIN
?column?:int4
1
ERROR 25001: SET TRANSACTION ISOLATION LEVEL must be called before any query
ROLLBACK
BEGIN
?column?:int4
1
ERROR 25001: SET TRANSACTION [NOT] DEFERRABLE must be called before any query
ROLLBACK
BEGIN
RESET
transaction_isolation:text
read committed
SHOW
ROLLBACK
WARNING 25P01: RESET TRANSACTION can only be used in transaction blocks
RESET

# Times that a wait may take. deadlock_timeout is accepted.
show deadlock_timeout;
set deadlock_timeout = '250ms';
select current_setting('deadlock_timeout');
set deadlock_timeout = 0;
set deadlock_timeout = '500us';
reset deadlock_timeout;
set lock_timeout = '1x';
set lock_timeout = 'soon';
set lock_timeout = -1;
set lock_timeout = '30d';
show lock_timeout;
begin;
set local lock_timeout = '1500ms';
show lock_timeout;
rollback;
show lock_timeout;
----
deadlock_timeout:text
1s
SHOW
SET
current_setting:text
250ms
ERROR 22023: 0 ms is outside the valid range for parameter "deadlock_timeout" (1 .. 2147483647)
ERROR 22023: 0 ms is outside the valid range for parameter "deadlock_timeout" (1 .. 2147483647)
RESET
ERROR 22023: invalid value for parameter "lock_timeout": "1x"
HINT: Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".
ERROR 22023: invalid value for parameter "lock_timeout": "soon"
ERROR 22023: -1 ms is outside the valid range for parameter "lock_timeout" (0 .. 2147483647)
ERROR 22023: invalid value for parameter "lock_timeout": "30d"
HINT: Value exceeds integer range.
lock_timeout:text
0
SHOW
BEGIN
SET
lock_timeout:text
1500ms
SHOW
ROLLBACK
lock_timeout:text
0
SHOW
