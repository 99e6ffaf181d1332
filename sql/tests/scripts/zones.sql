# Times in the session's time zone.
\zone Europe/Berlin
select '2024-07-01 12:00'::timestamptz, '2024-01-01 12:00'::timestamptz, '2024-07-01 12:00Z'::timestamptz;
select '2024-03-31 02:30'::timestamptz, '2024-10-27 02:30'::timestamptz;
select '1890-01-01 00:00Z'::timestamptz;
select now(), current_timestamp, 'now'::timestamptz, 'today'::timestamptz, 'tomorrow'::timestamptz,
'yesterday'::timestamptz;
select now()::text, '2024-07-01'::timestamptz::text;
create table t (at timestamptz primary key, v text default now());
insert into t (at) values ('2024-07-01 12:00'), ('2024-07-01 12:00Z'), ('-infinity'), ('infinity'),
('0001-01-01 BC') returning *;
select at from t where at > '2024-07-01 11:00' order by at;
select at from t where at = '2024-07-01 10:00Z';
----
timestamptz:timestamptz|timestamptz:timestamptz|timestamptz:timestamptz
2024-07-01 12:00:00+02|2024-01-01 12:00:00+01|2024-07-01 14:00:00+02
timestamptz:timestamptz|timestamptz:timestamptz
2024-03-31 03:30:00+02|2024-10-27 02:30:00+01
timestamptz:timestamptz
1890-01-01 00:53:28+00:53:28
now:timestamptz|current_timestamp:timestamptz|timestamptz:timestamptz|timestamptz:timestamptz|timestamptz:timestamptz|timestamptz:timestamptz
2024-05-05 09:08:09.500678+02|2024-05-05 09:08:09.500678+02|2024-05-05 09:08:09.500678+02|2024-05-05 00:00:00+02|2024-05-06 00:00:00+02|2024-05-04 00:00:00+02
now:text|text:text
2024-05-05 09:08:09.500678+02|2024-07-01 00:00:00+02
CREATE TABLE
at:timestamptz|v:text
2024-07-01 12:00:00+02|2024-05-05 09:08:09.500678+02
2024-07-01 14:00:00+02|2024-05-05 09:08:09.500678+02
-infinity|2024-05-05 09:08:09.500678+02
infinity|2024-05-05 09:08:09.500678+02
0001-01-01 00:00:00+00:53:28 BC|2024-05-05 09:08:09.500678+02
INSERT 0 5
at:timestamptz
2024-07-01 12:00:00+02
2024-07-01 14:00:00+02
infinity
at:timestamptz
2024-07-01 12:00:00+02

\zone Asia/Kolkata
select at from t order by at;
explain select at from t where at > '2024-07-01 11:00';
select current_user, session_user, current_database(), current_catalog, version();
----
at:timestamptz
-infinity
0001-01-01 05:00:00+05:53:28 BC
2024-07-01 15:30:00+05:30
2024-07-01 17:30:00+05:30
infinity
Range Scan on t
  Key: (at > '2024-07-01 11:00'::timestamp with time zone)
current_user:name|session_user:name|current_database:name|current_catalog:name|version:text
ann|ann|shop|shop|PostgreSQL 15.0 (Cortado 0.1.0)

# Types that do not exist yet.
select current_date;
select localtimestamp;
select localtimestamp(3);
select current_time;
select localtime;
select current_timestamp(-1);
----
current_date:date
2024-05-05
localtimestamp:timestamp
2024-05-05 12:38:09.500678
localtimestamp:timestamp
2024-05-05 12:38:09.501
current_time:timetz
12:38:09.500678+05:30
localtime:time
12:38:09.500678
ERROR 42601: syntax error at or near "-" [at 26]
