# Advisory locks.
create table t (id int primary key, n int);
insert into t values (1, 10), (2, 20), (3, 30), (4, 40);
----
CREATE TABLE
INSERT 0 4

# The types of results; a lock is held as often as it was taken.
select pg_advisory_lock(1);
select pg_try_advisory_lock(1) as again, pg_advisory_unlock(1), pg_advisory_unlock(1), pg_advisory_unlock(1) as none;
select pg_advisory_unlock_shared(1);
select pg_advisory_unlock(1, 2);
select pg_typeof(pg_advisory_lock(1)), pg_advisory_lock(1) is null as is_null, length(pg_advisory_lock(1)::text);
select pg_advisory_lock(null), pg_try_advisory_lock(null);
select pg_advisory_unlock_all();
----
pg_advisory_lock:void
~
WARNING 01000: you don't own a lock of type ExclusiveLock
again:bool|pg_advisory_unlock:bool|pg_advisory_unlock:bool|none:bool
t|t|t|f
WARNING 01000: you don't own a lock of type ShareLock
pg_advisory_unlock_shared:bool
f
WARNING 01000: you don't own a lock of type ExclusiveLock
pg_advisory_unlock:bool
f
pg_typeof:regtype|is_null:bool|length:int4
void|f|0
pg_advisory_lock:void|pg_try_advisory_lock:bool
NULL|NULL
pg_advisory_unlock_all:void
~

# What is no name of a lock.
select pg_advisory_lock(1, 2::bigint);
select pg_advisory_lock(1.5);
select pg_advisory_lock('a');
select pg_advisory_lock();
select pg_advisory_lock(1, 2, 3);
select pg_advisory_lock('7'), pg_advisory_unlock(7), pg_advisory_lock(1::smallint), pg_advisory_unlock(1);
----
ERROR 42883: function pg_advisory_lock(integer, bigint) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
ERROR 42883: function pg_advisory_lock(numeric) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
ERROR 22P02: invalid input syntax for type bigint: "a" [at 25]
ERROR 42883: function pg_advisory_lock() does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
ERROR 42883: function pg_advisory_lock(integer, integer, integer) does not exist [at 8]
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
pg_advisory_lock:void|pg_advisory_unlock:bool|pg_advisory_lock:void|pg_advisory_unlock:bool
|t||t

# Sharers hold a lock together. A bigint and a pair are different locks.
\session a
select pg_advisory_lock_shared(1), pg_advisory_lock(0, 1);
\session b
select pg_try_advisory_lock_shared(1), pg_try_advisory_lock(1), pg_try_advisory_lock(4294967297);
select pg_try_advisory_lock(0, 1), pg_try_advisory_lock_shared(0, 1), pg_advisory_unlock(0, 1);
\session a
select pg_try_advisory_lock(1);
\session b
select pg_advisory_unlock_shared(1);
\session a
select pg_try_advisory_lock(1) as alone, pg_advisory_unlock_shared(1), pg_advisory_unlock(1);
select pg_advisory_unlock_all();
\session b
select pg_try_advisory_lock(0, 1), pg_try_advisory_lock(1);
select pg_advisory_unlock_all();
----
pg_advisory_lock_shared:void|pg_advisory_lock:void
|
pg_try_advisory_lock_shared:bool|pg_try_advisory_lock:bool|pg_try_advisory_lock:bool
t|f|t
WARNING 01000: you don't own a lock of type ExclusiveLock
pg_try_advisory_lock:bool|pg_try_advisory_lock_shared:bool|pg_advisory_unlock:bool
f|f|f
pg_try_advisory_lock:bool
f
pg_advisory_unlock_shared:bool
t
alone:bool|pg_advisory_unlock_shared:bool|pg_advisory_unlock:bool
t|t|t
pg_advisory_unlock_all:void
~
pg_try_advisory_lock:bool|pg_try_advisory_lock:bool
t|t
pg_advisory_unlock_all:void
~

# Those who wait get the lock in the order in which they came, and one who shares waits behind one who does not.
\session a
select pg_advisory_lock_shared(5);
\session b
\waits
select pg_advisory_lock(5), 'b';
\session c
select pg_try_advisory_lock_shared(5);
\waits
select pg_advisory_lock_shared(5), 'c';
\session a
select pg_advisory_unlock_shared(5);
\session b
\answer
select pg_advisory_unlock(5);
\session c
\answer
select pg_advisory_unlock_shared(5);
----
pg_advisory_lock_shared:void
~
pg_try_advisory_lock_shared:bool
f
pg_advisory_unlock_shared:bool
t
pg_advisory_lock:void|?column?:text
|b
pg_advisory_unlock:bool
t
pg_advisory_lock_shared:void|?column?:text
|c
pg_advisory_unlock_shared:bool
t

# What was taken for the session survives a rollback, also one to a savepoint. What was taken for the transaction does
# not.
\session a
begin;
select pg_advisory_xact_lock(1);
savepoint s;
select pg_advisory_lock(2), pg_advisory_xact_lock(3), pg_advisory_xact_lock(1);
rollback to s;
\session b
select pg_try_advisory_lock(1), pg_try_advisory_lock(2), pg_try_advisory_lock(3);
\session a
select 1 / 0;
\session b
select pg_try_advisory_lock(1), pg_try_advisory_lock(2);
select pg_advisory_unlock_all();
\session a
rollback;
select pg_advisory_unlock(2), pg_advisory_unlock(3);
----
BEGIN
pg_advisory_xact_lock:void
~
SAVEPOINT
pg_advisory_lock:void|pg_advisory_xact_lock:void|pg_advisory_xact_lock:void
||
ROLLBACK
pg_try_advisory_lock:bool|pg_try_advisory_lock:bool|pg_try_advisory_lock:bool
f|f|t
ERROR 22012: division by zero
pg_try_advisory_lock:bool|pg_try_advisory_lock:bool
f|f
pg_advisory_unlock_all:void
~
ROLLBACK
WARNING 01000: you don't own a lock of type ExclusiveLock
pg_advisory_unlock:bool|pg_advisory_unlock:bool
t|f

# One lock may be held for both. It is the session's alone to give up.
\session a
begin;
select pg_advisory_xact_lock(1);
select pg_advisory_unlock(1);
select pg_advisory_lock(1);
commit;
\session b
select pg_try_advisory_xact_lock(1);
\session a
select pg_advisory_unlock(1);
\session b
select pg_try_advisory_xact_lock(1);
select pg_try_advisory_xact_lock_shared(1);
\session a
select pg_try_advisory_lock(1), pg_advisory_unlock(1);
----
BEGIN
pg_advisory_xact_lock:void
~
WARNING 01000: you don't own a lock of type ExclusiveLock
pg_advisory_unlock:bool
f
pg_advisory_lock:void
~
COMMIT
pg_try_advisory_xact_lock:bool
f
pg_advisory_unlock:bool
t
pg_try_advisory_xact_lock:bool
t
pg_try_advisory_xact_lock_shared:bool
t
pg_try_advisory_lock:bool|pg_advisory_unlock:bool
t|t

# A block that fails, with a savepoint or without, gives up what its transaction took.
\session a
begin;
select pg_advisory_xact_lock(1);
savepoint s;
select pg_advisory_xact_lock(2);
select 1 / 0;
\session b
select pg_try_advisory_xact_lock(1), pg_try_advisory_xact_lock(2);
\session a
rollback to s;
commit;
\session b
select pg_try_advisory_xact_lock(1), pg_try_advisory_xact_lock(2);
----
BEGIN
pg_advisory_xact_lock:void
~
SAVEPOINT
pg_advisory_xact_lock:void
~
ERROR 22012: division by zero
pg_try_advisory_xact_lock:bool|pg_try_advisory_xact_lock:bool
f|t
ROLLBACK
COMMIT
pg_try_advisory_xact_lock:bool|pg_try_advisory_xact_lock:bool
t|t

# Transactions that only read take locks too.
\session a
begin read only;
select pg_advisory_xact_lock(1), pg_try_advisory_lock(2);
commit;
select pg_advisory_unlock(1), pg_advisory_unlock(2);
----
BEGIN
pg_advisory_xact_lock:void|pg_try_advisory_lock:bool
|t
COMMIT
WARNING 01000: you don't own a lock of type ExclusiveLock
pg_advisory_unlock:bool|pg_advisory_unlock:bool
f|t

# For each row. No lock is taken for a row that LIMIT drops; for those that OFFSET skips, there is.
\session a
select id, pg_advisory_lock(id) from t order by n desc limit 2;
\session b
select pg_try_advisory_lock(id) from t;
select pg_advisory_unlock_all();
\session a
select pg_advisory_unlock_all();
select pg_advisory_lock(id) from t limit 1 offset 1;
\session b
select id from t where pg_try_advisory_lock(id) order by id limit 1;
select pg_advisory_unlock(id) from t;
\session a
select pg_advisory_unlock_all();
select count(*), count(pg_advisory_lock(id)) filter (where id < 3) from t;
select count(*) from t having pg_advisory_unlock(1);
select distinct pg_try_advisory_lock(7) from t;
select id, case when id = 2 then pg_advisory_unlock(2) end as unlocked from t;
select pg_advisory_unlock_all();
----
id:int4|pg_advisory_lock:void
4|
3|
pg_try_advisory_lock:bool
t
t
f
f
pg_advisory_unlock_all:void
~
pg_advisory_unlock_all:void
~
pg_advisory_lock:void
~
id:int4
3
WARNING 01000: you don't own a lock of type ExclusiveLock
WARNING 01000: you don't own a lock of type ExclusiveLock
WARNING 01000: you don't own a lock of type ExclusiveLock
pg_advisory_unlock:bool
f
f
t
f
pg_advisory_unlock_all:void
~
count:int8|count:int8
4|2
count:int8
4
pg_try_advisory_lock:bool
t
id:int4|unlocked:bool
1|NULL
2|t
3|NULL
4|NULL
pg_advisory_unlock_all:void
~

# In a condition, after all that takes no lock, up to the first part that is not true.
\session a
insert into t values (5, null);
select id from t where pg_try_advisory_lock(id) and n >= 20 and id < 3;
select id from t where n = 40 and pg_try_advisory_lock(id);
select id from t where pg_try_advisory_lock(10 + id) and n > 20 and pg_try_advisory_lock(20 + id) order by id;
explain select id from t where pg_try_advisory_lock(id) and n = 40;
\session b
select id, pg_try_advisory_lock(id), pg_try_advisory_lock(10 + id), pg_try_advisory_lock(20 + id) from t order by id;
select pg_advisory_unlock_all();
\session a
select pg_advisory_unlock_all();
select count(*) from t having null and pg_try_advisory_lock(1);
select pg_advisory_unlock(1);
delete from t where id = 5;
----
INSERT 0 1
id:int4
2
id:int4
4
id:int4
3
4
Full Scan on t
  Filter: ((n = 40) AND pg_try_advisory_lock(id))
id:int4|pg_try_advisory_lock:bool|pg_try_advisory_lock:bool|pg_try_advisory_lock:bool
1|t|t|t
2|f|t|t
3|t|f|f
4|f|f|f
5|t|t|t
pg_advisory_unlock_all:void
~
pg_advisory_unlock_all:void
~
count:int8
WARNING 01000: you don't own a lock of type ExclusiveLock
pg_advisory_unlock:bool
f
DELETE 1

# In statements that write.
\session a
update t set n = n + 1 where id < 3 and pg_try_advisory_lock(id) returning id, pg_advisory_unlock(id);
insert into t values (5, case when pg_try_advisory_lock(5) then 50 else 0 end) returning n, pg_advisory_unlock(5);
insert into t select id + 10, n from t where pg_try_advisory_xact_lock(id) and id > 4;
values (pg_try_advisory_lock(1)), (pg_advisory_unlock(1)), (pg_advisory_unlock(1));
delete from t where id = 5 and pg_try_advisory_xact_lock(5);
select id from t where pg_try_advisory_xact_lock(id) limit 1 for update;
select n from t limit case when pg_try_advisory_lock(1) then 1 else 2 end;
explain select pg_advisory_lock(id) from t where pg_try_advisory_lock(1, id);
----
id:int4|pg_advisory_unlock:bool
1|t
2|t
UPDATE 2
n:int4|pg_advisory_unlock:bool
50|t
INSERT 0 1
INSERT 0 1
WARNING 01000: you don't own a lock of type ExclusiveLock
column1:bool
t
t
f
DELETE 1
id:int4
1
ERROR 0A000: functions of advisory locks and of sessions in LIMIT and OFFSET are not supported
Full Scan on t
  Filter: pg_try_advisory_lock(1, id)

# With parameters.
\session a
\params 42
select pg_advisory_lock($1);
\params 42
select pg_try_advisory_lock_shared($1), pg_advisory_unlock_shared($1), pg_advisory_unlock($1);
\params 1 2
select pg_try_advisory_xact_lock($1, $2);
\params 3
select id, pg_advisory_lock(id) from t where id <= $1;
select pg_advisory_unlock_all();
----
params int8
pg_advisory_lock:void
~
params int8
pg_try_advisory_lock_shared:bool|pg_advisory_unlock_shared:bool|pg_advisory_unlock:bool
t|t|t
params int4 int4
pg_try_advisory_xact_lock:bool
t
params int4
id:int4|pg_advisory_lock:void
1|
2|
3|
pg_advisory_unlock_all:void
~

# lock_timeout and statement_timeout. Who gives up leaves the queue.
\session a
select pg_advisory_lock(1);
\session b
set lock_timeout = '50ms';
select pg_advisory_lock(1);
begin;
select pg_advisory_xact_lock_shared(1);
rollback;
reset lock_timeout;
set statement_timeout = '50ms';
select pg_advisory_lock(1);
reset statement_timeout;
\session a
select pg_advisory_unlock(1);
\session c
select pg_try_advisory_lock(1), pg_advisory_unlock(1);
----
pg_advisory_lock:void
~
SET
ERROR 55P03: canceling statement due to lock timeout
BEGIN
ERROR 55P03: canceling statement due to lock timeout
ROLLBACK
RESET
SET
ERROR 57014: canceling statement due to statement timeout
RESET
pg_advisory_unlock:bool
t
pg_try_advisory_lock:bool|pg_advisory_unlock:bool
t|t

# DISCARD ALL gives up what is held for the session.
\session a
select pg_advisory_lock(1);
discard all;
\session b
select pg_try_advisory_lock(1), pg_advisory_unlock(1);
----
pg_advisory_lock:void
~
DISCARD ALL
pg_try_advisory_lock:bool|pg_advisory_unlock:bool
t|t

# In GROUP BY a lock is taken for each row; what is void cannot be told apart.
\session a
select pg_try_advisory_lock(1) as taken, count(*) from t group by 1;
select count(*) from t group by pg_try_advisory_lock(id / 3);
select count(*) from pg_locks where locktype = 'advisory';
select pg_advisory_unlock_all();
select pg_advisory_lock(1), count(*) from t group by 1;
select distinct pg_advisory_lock(1);
select pg_advisory_lock(1) order by 1;
----
taken:bool|count:int8
t|5
count:int8
5
count:int8
3
pg_advisory_unlock_all:void
~
ERROR 42883: could not identify an equality operator for type void [at 54]
ERROR 42883: could not identify an equality operator for type void [at 17]
ERROR 42883: could not identify an ordering operator for type void [at 37]
HINT: Use an explicit ordering operator or modify the query.
