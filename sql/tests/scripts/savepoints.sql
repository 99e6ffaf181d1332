# Savepoints: what follows one can be undone, also by a failed statement.
create table t (id int primary key, v text);
begin;
insert into t values (1, 'kept');
savepoint a;
insert into t values (2, 'undone');
update t set v = 'changed' where id = 1;
select * from t;
rollback to a;
select * from t;
commit;
select * from t;
----
CREATE TABLE
BEGIN
INSERT 0 1
SAVEPOINT
INSERT 0 1
UPDATE 1
id:int4|v:text
1|changed
2|undone
ROLLBACK
id:int4|v:text
1|kept
COMMIT
id:int4|v:text
1|kept

# A failed statement fails the block, until ROLLBACK TO. Statements before it are kept.
begin;
insert into t values (2, 'two');
savepoint a;
insert into t values (2, 'again');
select 1;
release a;
rollback to savepoint a;
select * from t;
insert into t values (3, 'three');
commit;
select * from t;
----
BEGIN
INSERT 0 1
SAVEPOINT
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(2) already exists.
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block
ROLLBACK
id:int4|v:text
1|kept
2|two
INSERT 0 1
COMMIT
id:int4|v:text
1|kept
2|two
3|three

# Names nest and may be used again: the newest counts.
begin;
savepoint a;
insert into t values (4, 'outer');
savepoint a;
insert into t values (5, 'inner');
rollback to a;
select id from t where id > 3;
release a;
rollback to a;
select id from t where id > 3;
release savepoint a;
rollback to a;
rollback;
----
BEGIN
SAVEPOINT
INSERT 0 1
SAVEPOINT
INSERT 0 1
ROLLBACK
id:int4
4
RELEASE
ROLLBACK
id:int4
RELEASE
ERROR 3B001: savepoint "a" does not exist
ROLLBACK

# RELEASE forgets the savepoints after it too.
begin;
savepoint a;
savepoint b;
insert into t values (4, 'kept');
release a;
rollback to b;
commit;
select id from t where id = 4;
----
BEGIN
SAVEPOINT
SAVEPOINT
INSERT 0 1
RELEASE
ERROR 3B001: savepoint "b" does not exist
ROLLBACK
id:int4

# Outside of a block.
savepoint a;
release a;
rollback to a;
----
ERROR 25P01: SAVEPOINT can only be used in transaction blocks
ERROR 25P01: RELEASE SAVEPOINT can only be used in transaction blocks
ERROR 25P01: ROLLBACK TO SAVEPOINT can only be used in transaction blocks

# COMMIT of a failed block rolls everything back, whatever savepoints there are.
begin;
insert into t values (6, 'lost');
savepoint a;
select 1/0;
commit;
select id from t where id = 6;
----
BEGIN
INSERT 0 1
SAVEPOINT
ERROR 22012: division by zero
ROLLBACK
id:int4

# Settings and schema changes are undone as well.
begin;
savepoint a;
set statement_timeout = '5s';
create table u (id int primary key);
insert into u values (1);
drop table t;
rollback to a;
show statement_timeout;
select * from t where id = 1;
create table u (id int primary key, v text);
insert into u values (7, 'seven');
commit;
select * from u;
----
BEGIN
SAVEPOINT
SET
CREATE TABLE
INSERT 0 1
DROP TABLE
ROLLBACK
statement_timeout:text
0
SHOW
id:int4|v:text
1|kept
CREATE TABLE
INSERT 0 1
COMMIT
id:int4|v:text
7|seven

# The rows that were locked since are free.
begin;
select v from t where id = 1 for update;
savepoint a;
select v from t where id = 2 for update;
rollback to a;
----
BEGIN
v:text
kept
SAVEPOINT
v:text
two
ROLLBACK

\session b
select v from t where id = 2 for update nowait;
select v from t where id = 1 for update nowait;
----
v:text
two
ERROR 55P03: could not obtain lock on row in relation "t"

\session main
rollback;
----
ROLLBACK
