# Which snapshot a statement reads, and who serves it. A store of the tests is a leader, so every replica is the same.
create table t (id int primary key, v text);
create sequence s;
insert into t values (1, 'old');
\advance 10000
update t set v = 'new';
----
CREATE TABLE
CREATE SEQUENCE
INSERT 0 1
UPDATE 1

# The settings, with their defaults and values.
\session fresh
show cortado.replica_read;
show cortado.read_staleness;
show cortado.session_snapshot;
show cortado.hedge;
show cortado.grants;
show cortado.replica_wait;
show cortado.last_read;
set cortado.replica_read = nearest;
set cortado.read_staleness = '-5s';
set cortado.hedge = on;
set cortado.session_snapshot = maybe;
set cortado.session_token = 'yesterday';
set cortado.session_token = '69999999999999.0';
set cortado.last_read = 'none';
set cortado.no_such_setting = 1;
----
cortado.replica_read:text
leader
SHOW
cortado.read_staleness:text
~
SHOW
cortado.session_snapshot:text
off
SHOW
cortado.hedge:text
off
SHOW
cortado.grants:text
on
SHOW
cortado.replica_wait:text
5s
SHOW
cortado.last_read:text
none
SHOW
ERROR 22023: invalid value for parameter "cortado.replica_read": "nearest"
HINT: Available values: leader, follower, closest, any, learner.
ERROR 22023: invalid value for parameter "cortado.read_staleness": "-5s"
HINT: Available values: '' (fresh), an age such as '5s', 'max 5s', unbounded.
ERROR 22023: invalid value for parameter "cortado.hedge": "on"
HINT: Available values: off, auto, or a delay such as '2ms'.
ERROR 22023: parameter "cortado.session_snapshot" requires a Boolean value
ERROR 22023: invalid value for parameter "cortado.session_token": "yesterday"
HINT: Take the value that SHOW cortado.session_token prints.
ERROR 22023: timestamp 69999999999999.0 is in the future
ERROR 55P02: parameter "cortado.last_read" cannot be changed
ERROR 42704: unrecognized configuration parameter "cortado.no_such_setting"

# SET LOCAL ends with the transaction. RESET restores the default.
\session main
begin;
set local cortado.replica_read = Closest;
set cortado.hedge to '2000us';
show cortado.replica_read;
show cortado.hedge;
select v from t;
rollback;
show cortado.replica_read;
show cortado.hedge;
set cortado.read_staleness = 'MAX 5000 ms';
show cortado.read_staleness;
reset cortado.read_staleness;
show cortado.read_staleness;
select set_config('cortado.replica_read', 'any', false), current_setting('cortado.replica_read');
reset all;
----
BEGIN
SET
SET
cortado.replica_read:text
closest
SHOW
cortado.hedge:text
2ms
SHOW
v:text
new
ROLLBACK
cortado.replica_read:text
leader
SHOW
cortado.hedge:text
off
SHOW
SET
cortado.read_staleness:text
max 5s
SHOW
RESET
cortado.read_staleness:text
~
SHOW
set_config:text|current_setting:text
any|any
RESET

# AS OF SYSTEM TIME reads what was there then.
select * from t as of system time '-5s';
select * from t as of system time interval '-5 seconds' where id = 1;
select count(*) from t AS OF SYSTEM TIME '-00:00:05' limit 1;
select v from t as of system time follower_read_timestamp();
select v from t as of system time with_max_staleness('10s');
select v from t as of system time with_min_timestamp('1970-01-01 00:01:45+00');
select v from t as of system time '1970-01-01 00:01:45+00';
select v from t as of system time 105000.0;
select v from t as of system time '105000.7' order by id;
\params 1
select v from t as of system time '-5s' where id = $1;
select * from t;
----
id:int4|v:text
1|old
id:int4|v:text
1|old
count:int8
1
v:text
old
v:text
new
v:text
new
v:text
old
v:text
old
v:text
old
params int4
v:text
old
id:int4|v:text
1|new

# Points in time that cannot be read.
select * from t as of system time '5s';
select * from t as of system time '2199-01-01';
select * from t as of system time with_min_timestamp('2199-01-01');
select * from t as of system time 'soon';
select * from t as of system time 50000.0;
select * from t as of system time '-1 year';
select * from t as of system time now();
select * from t as of system time v;
select * from t as of system time $1;
select (select v from t as of system time '-5s');
select * from t as of system time;
select * from t where id = 1 as of system time '-5s' limit;
----
ERROR 22023: AS OF SYSTEM TIME: interval "5s" does not point to the past: it must be at most -1 microsecond
ERROR 22023: timestamp 7226582400000.0 is in the future
ERROR 22023: timestamp 7226582400000.0 is in the future
ERROR 22023: AS OF SYSTEM TIME: value "soon" is neither a timestamp, a decimal, nor an interval
ERROR 72000: snapshot too old: the database did not exist at 50000.0
ERROR 22023: AS OF SYSTEM TIME: the timestamp is out of range: before 1970, or infinite
ERROR 42601: AS OF SYSTEM TIME: only constant expressions, with_min_timestamp, with_max_staleness, or follower_read_timestamp are allowed [at 35]
ERROR 42601: AS OF SYSTEM TIME: only constant expressions, with_min_timestamp, with_max_staleness, or follower_read_timestamp are allowed [at 35]
ERROR 0A000: parameters in AS OF SYSTEM TIME are not supported [at 35]
ERROR 42601: AS OF SYSTEM TIME must be provided on a top-level statement [at 25]
ERROR 42601: syntax error at or near ";" [at 34]
ERROR 42601: syntax error at or near ";" [at 59]

# Writes and locks in the past.
insert into t values (2, 'x') as of system time '-5s';
select * from t as of system time '-5s' for update;
update t set v = 'x' as of system time '-5s';
create table u (id int primary key) as of system time '-5s';
----
ERROR 25006: cannot execute INSERT in a read-only transaction
DETAIL: The transaction reads a snapshot of the past, so it cannot write.
ERROR 25006: cannot execute SELECT FOR UPDATE in a read-only transaction
DETAIL: The transaction reads a snapshot of the past, so it cannot write.
ERROR 25006: cannot execute UPDATE in a read-only transaction
DETAIL: The transaction reads a snapshot of the past, so it cannot write.
ERROR 25006: cannot execute CREATE TABLE in a read-only transaction
DETAIL: The transaction reads a snapshot of the past, so it cannot write.

# A transaction in the past.
begin as of system time '-5s';
show transaction_read_only;
select * from t;
select v from t where id = 1;
insert into t values (2, 'x');
rollback;
----
BEGIN
transaction_read_only:text
on
SHOW
id:int4|v:text
1|old
v:text
old
ERROR 25006: cannot execute INSERT in a read-only transaction
ROLLBACK

start transaction isolation level repeatable read, as of system time '-5s';
select v from t for share;
rollback;
----
START TRANSACTION
ERROR 25006: cannot execute SELECT FOR SHARE in a read-only transaction
ROLLBACK

begin;
set transaction as of system time '-5s';
select v from t;
commit and chain;
select v from t;
commit;
----
BEGIN
SET
v:text
old
COMMIT
v:text
old
COMMIT

# Its snapshot is set once, before any query, and excludes writes.
begin read write as of system time '-5s';
begin as of system time '-5s';
set transaction read write;
rollback;
begin;
select v from t;
set transaction as of system time '-5s';
rollback;
begin as of system time with_max_staleness('5s');
begin as of system time '1h';
begin;
select v from t as of system time '-5s';
rollback;
set session characteristics as transaction as of system time '-5s';
set transaction as of system time '-5s';
select v from t;
----
ERROR 42601: AS OF SYSTEM TIME specified with READ WRITE mode
BEGIN
ERROR 42601: AS OF SYSTEM TIME specified with READ WRITE mode
ROLLBACK
BEGIN
v:text
new
ERROR 25001: AS OF SYSTEM TIME must be set before any query
ROLLBACK
ERROR 0A000: cannot use a bounded staleness query in a transaction
HINT: Name a timestamp, or set cortado.read_staleness to 'max ...'.
ERROR 22023: AS OF SYSTEM TIME: interval "1h" does not point to the past: it must be at most -1 microsecond
BEGIN
ERROR 25001: a statement in a transaction block cannot have a snapshot of its own
HINT: Use BEGIN AS OF SYSTEM TIME.
ROLLBACK
ERROR 0A000: AS OF SYSTEM TIME of a session is not supported
HINT: Set cortado.read_staleness.
WARNING 25P01: SET TRANSACTION can only be used in transaction blocks
SET
v:text
new

# Several statements of one string share a transaction. One with a snapshot of its own is apart.
select v from t as of system time '-5s'; select v from t; update t set v = 'newer';
update t set v = 'x'; select v from t as of system time '-5s';
select v from t;
----
v:text
old
v:text
new
UPDATE 1
UPDATE 1
ERROR 25001: a statement in a transaction block cannot have a snapshot of its own
HINT: Use BEGIN AS OF SYSTEM TIME.
v:text
newer

# A session of old data reads, and does not write.
set cortado.read_staleness = '5s';
select v from t;
insert into t values (2, 'x');
select v from t for update;
create table u (id int primary key);
begin;
select v from t;
update t set v = 'x';
rollback;
select /*+ STALENESS('') */ v from t;
set cortado.read_staleness = 'max 5s';
select v from t;
delete from t;
begin;
select v from t;
select v from t where id = 1;
commit;
set cortado.read_staleness = 'unbounded';
select v from t;
truncate t;
reset cortado.read_staleness;
----
SET
v:text
old
ERROR 25006: cannot execute INSERT in a read-only transaction
DETAIL: The transaction reads a snapshot of the past, so it cannot write.
ERROR 25006: cannot execute SELECT FOR UPDATE in a read-only transaction
DETAIL: The transaction reads a snapshot of the past, so it cannot write.
ERROR 25006: cannot execute CREATE TABLE in a read-only transaction
DETAIL: The transaction reads a snapshot of the past, so it cannot write.
BEGIN
v:text
old
ERROR 25006: cannot execute UPDATE in a read-only transaction
DETAIL: The transaction reads a snapshot of the past, so it cannot write.
ROLLBACK
v:text
newer
SET
v:text
newer
ERROR 25006: cannot execute DELETE in a read-only transaction
DETAIL: The transaction reads a snapshot of the past, so it cannot write.
BEGIN
v:text
newer
v:text
newer
COMMIT
SET
v:text
newer
ERROR 25006: cannot execute TRUNCATE TABLE in a read-only transaction
DETAIL: The transaction reads a snapshot of the past, so it cannot write.
RESET

# Hints stand at the head and after the first keyword.
select /*+ REPLICA_READ(closest) HEDGE(auto) STALENESS('5s') */ v from t;
/*+ staleness(5s) */ /* x */ select /*+ hedge('2ms') */ v from t;
\params 1
select /*+ STALENESS('5s') */ v from t where id = $1;
select v from t /*+ STALENESS('5s') */;
select /*+ INDEX(t) REPLICA_READ(any) */ v from t;
select /*+ REPLICA_READ(nearest) */ v from t;
select /*+ HEDGE(auto */ v from t;
select /*+ STALENESS('-5s') */ v from t;
update /*+ REPLICA_READ(any) HEDGE(auto) */ t set v = 'newest';
update /*+ STALENESS('5s') */ t set v = 'x';
select /*+ REPLICA_READ(any) */ v from t for update;
begin;
select /*+ STALENESS('5s') */ v from t;
rollback;
----
v:text
old
v:text
old
params int4
v:text
old
v:text
newer
NOTICE 00000: hint "INDEX" is not known and ignored
v:text
newer
ERROR 22023: invalid value for hint REPLICA_READ: "nearest" [at 12]
HINT: Available values: leader, follower, closest, any, learner.
ERROR 22023: a hint is not closed [at 12]
ERROR 22023: invalid value for hint STALENESS: "-5s" [at 12]
HINT: Available values: '' (fresh), an age such as '5s', 'max 5s', unbounded.
NOTICE 00000: hint "REPLICA_READ" is ignored: the statement does more than read
NOTICE 00000: hint "HEDGE" is ignored: the statement does more than read
UPDATE 1
ERROR 25006: cannot execute UPDATE in a read-only transaction
DETAIL: The transaction reads a snapshot of the past, so it cannot write.
NOTICE 00000: hint "REPLICA_READ" is ignored: the statement does more than read
v:text
newest
BEGIN
ERROR 25001: a statement in a transaction block cannot have a snapshot of its own
HINT: Use BEGIN AS OF SYSTEM TIME.
ROLLBACK

# Session snapshots: a session sees its own writes.
set cortado.session_snapshot = on;
insert into t values (2, 'two');
select * from t;
begin read only;
select * from t;
insert into t values (3, 'x');
rollback;
begin;
update t set v = 'TWO' where id = 2;
select * from t;
commit;
select * from t where id = 2;
select 1;
show cortado.last_read;
reset cortado.session_snapshot;
----
SET
INSERT 0 1
id:int4|v:text
1|newest
2|two
BEGIN
id:int4|v:text
1|newest
2|two
ERROR 25006: cannot execute INSERT in a read-only transaction
ROLLBACK
BEGIN
UPDATE 1
id:int4|v:text
1|newest
2|TWO
COMMIT
id:int4|v:text
2|TWO
?column?:int4
1
cortado.last_read:text
none
SHOW
RESET

# A table that was dropped, truncated or made anew is there in the past.
create table gone (id int primary key, a int);
insert into gone values (1, 10);
\advance 10000
truncate gone;
\advance 10000
drop table gone;
create table gone (id int primary key, b text);
select * from gone as of system time '-15s';
select * from gone as of system time '-5s';
select * from gone;
explain select a from gone as of system time '-15s' where id = 1;
select b from gone as of system time '-15s';
select * from gone as of system time '-25s';
----
CREATE TABLE
INSERT 0 1
TRUNCATE TABLE
DROP TABLE
CREATE TABLE
id:int4|a:int4
1|10
id:int4|a:int4
id:int4|b:text
Point Get on gone
  Key: (id = 1)
ERROR 42703: column "b" does not exist [at 8]
ERROR 42P01: relation "gone" does not exist [at 15]

# How the last statement read. SHOW and SET are no statements that read.
select v from t where id = 1;
set cortado.hedge = auto;
show cortado.last_read;
explain (analyze) select v from t where id = 1;
show cortado.last_read;
select 1;
show cortado.last_read;
----
v:text
newest
SET
cortado.last_read:text
path=lease store=1 node=1 round_trips=0 requests=1 start_ts=... safe_ts=...
SHOW
Point Get on t (actual time=... rows=1 loops=1)
  Key: (id = 1)
  Read: path=lease store=1 node=1 round_trips=0 requests=1 start_ts=... safe_ts=... regions=1
Planning Time: ... ms
Execution Time: ... ms
cortado.last_read:text
path=lease store=1 node=1 round_trips=0 requests=1 start_ts=... safe_ts=...
SHOW
?column?:int4
1
cortado.last_read:text
none
SHOW

# The past gives no values.
select nextval('s') as of system time '-5s';
begin as of system time '-5s';
select nextval('s');
rollback;
begin as of system time '-5s';
select setval('s', 5);
rollback;
----
ERROR 25006: cannot execute nextval() in a read-only transaction
DETAIL: The transaction reads a snapshot of the past, so it cannot write.
BEGIN
ERROR 25006: cannot execute nextval() in a read-only transaction
ROLLBACK
BEGIN
ERROR 25006: cannot execute setval() in a read-only transaction
ROLLBACK
