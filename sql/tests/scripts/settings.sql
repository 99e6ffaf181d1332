# Settings: the text forms of floats and bytes, memory, what pg_settings says of them.
select 0.1::float8 + 0.2, 1e15::float8, 1.5e-5::float8, 0.1::float4, '\x00ff5c41'::bytea;
----
?column?:float8|float8:float8|float8:float8|float4:float4|bytea:bytea
0.30000000000000004|1e+15|1.5e-05|0.1|\x00ff5c41

set extra_float_digits = 0;
select 0.1::float8 + 0.2, 1e15::float8, 123456789012345678::float8, 1.5e-5::float8, 1e14::float8;
select 1e6::float4, 123456.7::float4, 0.1::float4, 'NaN'::float8, '-0'::float8, '-Infinity'::float4;
select (0.1::float8 + 0.2)::text, array[0.1::float8 + 0.2], to_json(0.1::float8 + 0.2), (0.1::float8 + 0.2)::numeric;
----
SET
?column?:float8|float8:float8|float8:float8|float8:float8|float8:float8
0.3|1e+15|1.23456789012346e+17|1.5e-05|100000000000000
float4:float4|float4:float4|float4:float4|float8:float8|float8:float8|float4:float4
1e+06|123457|0.1|NaN|-0|-Infinity
text:text|array:_float8|to_json:json|numeric:numeric
0.3|{0.3}|0.3|0.3

set extra_float_digits = -15;
select 0.1::float8 + 0.2, 15::float8, 95::float8, 0.1::float4, 25.5::float4;
----
SET
?column?:float8|float8:float8|float8:float8|float4:float4|float4:float4
0.3|2e+01|1e+02|0.1|3e+01

set extra_float_digits = '-3';
select 15::float8, 123456789012.5::float8, 12.34567::float4, 1e3::float4;
----
SET
float8:float8|float8:float8|float4:float4|float4:float4
15|123456789012|12.3|1e+03

set extra_float_digits = 4;
----
ERROR 22023: 4 is outside the valid range for parameter "extra_float_digits" (-15 .. 3)

set extra_float_digits = 'x';
----
ERROR 22023: invalid value for parameter "extra_float_digits": "x"

reset extra_float_digits;
----
RESET

set bytea_output = 'escape';
select '\x00ff5c4127'::bytea, ''::bytea, '\x612062'::bytea::text, array['\x5c00'::bytea], encode('\x5c00', 'hex');
----
SET
bytea:bytea|bytea:bytea|text:text|array:_bytea|encode:text
\000\377\\A'||a b|{"\\\\\\000"}|5c00

set bytea_output = 'octal';
----
ERROR 22023: invalid value for parameter "bytea_output": "octal"
HINT: Available values: escape, hex.

reset bytea_output;
show bytea_output;
----
RESET
bytea_output:text
hex
SHOW

show work_mem;
----
work_mem:text
128MB
SHOW

set work_mem = '1.5MB';
select current_setting('work_mem');
----
SET
current_setting:text
1536kB

set work_mem = '63kB';
----
ERROR 22023: 63 kB is outside the valid range for parameter "work_mem" (64 .. 2147483647)

set work_mem = '10 XB';
----
ERROR 22023: invalid value for parameter "work_mem": "10 XB"
HINT: Valid units for this parameter are "B", "kB", "MB", "GB", and "TB".

set work_mem = '3TB';
----
ERROR 22023: invalid value for parameter "work_mem": "3TB"
HINT: Value exceeds integer range.

set work_mem = 'x';
----
ERROR 22023: invalid value for parameter "work_mem": "x"

set work_mem = 64;
select name, setting, unit, category, context, vartype, source, min_val, max_val, boot_val <> reset_val, pending_restart
from pg_settings where name in ('work_mem', 'random_page_cost', 'lock_timeout', 'application_name', 'enable_sort')
order by name;
----
SET
name:text|setting:text|unit:text|category:text|context:text|vartype:text|source:text|min_val:text|max_val:text|?column?:bool|pending_restart:bool
application_name||NULL|Reporting and Logging / What to Log|user|string|default|NULL|NULL|f|f
enable_sort|on|NULL|Query Tuning / Planner Method Configuration|user|bool|default|NULL|NULL|f|f
lock_timeout|0|ms|Client Connection Defaults / Statement Behavior|user|integer|default|0|2147483647|f|f
random_page_cost|4|NULL|Query Tuning / Planner Cost Constants|user|real|default|0|1.79769e+308|f|f
work_mem|64|kB|Resource Usage / Memory|user|integer|session|64|2147483647|f|f

select count(*) from (select n::text from generate_series(1, 100) n order by 1) s;
----
count:int8
100

select count(*) from (select n::text from generate_series(1, 10000) n order by 1) s;
----
ERROR 53200: out of memory
DETAIL: The statement needs more than 64 kB for sorts, groups, joins or returned rows.

select count(distinct n) from generate_series(1, 10000) n;
----
ERROR 53200: out of memory
DETAIL: The statement needs more than 64 kB for sorts, groups, joins or returned rows.

select count(*) from generate_series(1, 10000) a join generate_series(1, 10000) b on a = b;
----
ERROR 53200: out of memory
DETAIL: The statement needs more than 64 kB for sorts, groups, joins or returned rows.

reset work_mem;
select count(*) from (select n::text from generate_series(1, 10000) n order by 1) s;
----
RESET
count:int8
10000

set random_page_cost = 1.10;
show random_page_cost;
----
SET
random_page_cost:text
1.1
SHOW

set random_page_cost = -1;
----
ERROR 22023: -1 is outside the valid range for parameter "random_page_cost" (0 .. 1.79769e+308)

set enable_seqscan = off;
show enable_seqscan;
----
SET
enable_seqscan:text
off
SHOW

set session_replication_role = replica;
----
ERROR 0A000: session_replication_role "replica" is not supported

set role none;
show role;
----
SET
role:text
none
SHOW

select count(*) from pg_settings where name in ('role', 'is_superuser', 'session_authorization');
----
count:int8
0

# What the configuration of the node gives.
show max_connections;
show ssl;
select current_setting('superuser_reserved_connections')::int + 1;
select name, setting, category, context, vartype, min_val, max_val from pg_settings where name in ('max_connections', 'ssl', 'superuser_reserved_connections') order by 1;
set max_connections = 5;
reset max_connections;
set ssl to on;
set session_replication_role = replica;
----
max_connections:text
1000
SHOW
ssl:text
off
SHOW
?column?:int4
1
name:text|setting:text|category:text|context:text|vartype:text|min_val:text|max_val:text
max_connections|1000|Connections and Authentication / Connection Settings|postmaster|integer|1|262143
ssl|off|Connections and Authentication / SSL|sighup|bool|NULL|NULL
superuser_reserved_connections|0|Connections and Authentication / Connection Settings|postmaster|integer|0|262143
ERROR 55P02: parameter "max_connections" cannot be changed without restarting the server
ERROR 55P02: parameter "max_connections" cannot be changed without restarting the server
ERROR 55P02: parameter "ssl" cannot be changed now
ERROR 0A000: session_replication_role "replica" is not supported
