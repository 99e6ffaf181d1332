# Locks of rows, and what waits for them.
create table t (id int primary key, n int);
insert into t values (1, 10), (2, 20), (3, 30);
----
CREATE TABLE
INSERT 0 3

# A writer that finds a newer row waits, and evaluates its condition and its expressions on the newest row.
\session a
begin;
update t set n = n + 1 where id = 1;
----
BEGIN
UPDATE 1

\session b
\waits
update t set n = n * 2 where n >= 10;
----

\session a
update t set n = 5 where id = 2;
commit;
----
UPDATE 1
COMMIT

\session b
\answer
select * from t;
----
UPDATE 2
id:int4|n:int4
1|22
2|5
3|60

# A row that does not pass any more is left alone, and so is one that is gone.
\session a
begin;
update t set n = -1 where id = 1;
delete from t where id = 2;
----
BEGIN
UPDATE 1
DELETE 1

\session b
\waits
update t set n = 0 where n > 0 returning id;
----

\session a
commit;
----
COMMIT

\session b
\answer
select * from t;
----
id:int4
3
UPDATE 1
id:int4|n:int4
1|-1
3|0

# DELETE does the same.
\session a
begin;
update t set n = 7 where id = 3;
----
BEGIN
UPDATE 1

\session b
\waits
delete from t where n = 0;
----

\session a
commit;
----
COMMIT

\session b
\answer
select * from t;
----
DELETE 0
id:int4|n:int4
1|-1
3|7

# NOWAIT, SKIP LOCKED, lock_timeout.
\session a
begin;
select * from t where id = 1 for update;
----
BEGIN
id:int4|n:int4
1|-1

\session b
select * from t for update nowait;
select * from t order by id for update skip locked;
select * from t order by id limit 1 for update skip locked;
set lock_timeout = '20ms';
update t set n = 1 where id = 1;
reset lock_timeout;
select * from t where id = 1;
----
ERROR 55P03: could not obtain lock on row in relation "t"
id:int4|n:int4
3|7
id:int4|n:int4
3|7
SET
ERROR 55P03: canceling statement due to lock timeout
RESET
id:int4|n:int4
1|-1

\session a
commit;
----
COMMIT

# Shared locks are shared. FOR KEY SHARE lets writers of other columns pass.
\session a
begin;
select id from t where id = 1 for share;
select id from t where id = 3 for key share;
----
BEGIN
id:int4
1
id:int4
3

\session b
begin;
select id from t where id = 1 for share nowait;
select id from t where id = 3 for no key update nowait;
update t set n = 33 where id = 3;
commit;
begin;
select id from t where id = 1 for no key update nowait;
rollback;
begin;
\waits
delete from t where id = 3;
----
BEGIN
id:int4
1
id:int4
3
UPDATE 1
COMMIT
BEGIN
ERROR 55P03: could not obtain lock on row in relation "t"
ROLLBACK
BEGIN

\session a
commit;
----
COMMIT

\session b
\answer
rollback;
----
DELETE 1
ROLLBACK

# FOR UPDATE returns rows as they are after the wait, and LIMIT counts those that still pass.
\session a
begin;
update t set n = 0 where id = 1;
----
BEGIN
UPDATE 1

\session b
\waits
select * from t where n <> 0 order by id limit 1 for update;
----

\session a
commit;
----
COMMIT

\session b
\answer
----
id:int4|n:int4
3|33

# An INSERT waits for one of the same key. So does ON CONFLICT.
\session a
begin;
insert into t values (9, 90);
----
BEGIN
INSERT 0 1

\session b
\waits
insert into t values (9, 91) on conflict (id) do update set n = t.n + excluded.n;
----

\session c
\waits
insert into t values (9, 92) on conflict do nothing;
----

\session a
commit;
----
COMMIT

\session b
\answer
----
INSERT 0 1

\session c
\answer
select * from t where id = 9;
----
INSERT 0 0
id:int4|n:int4
9|181

# Errors of the clause.
select * from t for update of u;
select count(*) from t for update;
begin read only;
select * from t for share;
rollback;
----
ERROR 42P01: relation "u" in FOR UPDATE clause not found in FROM clause [at 31]
ERROR 0A000: FOR UPDATE is not allowed with DISTINCT or aggregate functions
BEGIN
ERROR 25006: cannot execute SELECT FOR SHARE in a read-only transaction
ROLLBACK
