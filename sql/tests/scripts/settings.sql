# Settings: the text forms of floats and bytes, memory, what pg_settings says of them.
select 0.1::float8 + 0.2, 1e15::float8, 1.5e-5::float8, 0.1::float4, '\x00ff5c41'::bytea;

set extra_float_digits = 0;
select 0.1::float8 + 0.2, 1e15::float8, 123456789012345678::float8, 1.5e-5::float8, 1e14::float8;
select 1e6::float4, 123456.7::float4, 0.1::float4, 'NaN'::float8, '-0'::float8, '-Infinity'::float4;
select (0.1::float8 + 0.2)::text, array[0.1::float8 + 0.2], to_json(0.1::float8 + 0.2), (0.1::float8 + 0.2)::numeric;

set extra_float_digits = -15;
select 0.1::float8 + 0.2, 15::float8, 95::float8, 0.1::float4, 25.5::float4;

set extra_float_digits = '-3';
select 15::float8, 123456789012.5::float8, 12.34567::float4, 1e3::float4;

set extra_float_digits = 4;

set extra_float_digits = 'x';

reset extra_float_digits;

set bytea_output = 'escape';
select '\x00ff5c4127'::bytea, ''::bytea, 'a\\b'::bytea::text, array['\x5c00'::bytea], encode('\x5c00', 'hex');

set bytea_output = 'octal';

reset bytea_output;
show bytea_output;

show work_mem;

set work_mem = '1.5MB';
select current_setting('work_mem');

set work_mem = '63kB';

set work_mem = '10 XB';

set work_mem = '3TB';

set work_mem = 'x';

set work_mem = 64;
select name, setting, unit, category, context, vartype, source, min_val, max_val, boot_val <> reset_val, pending_restart
from pg_settings where name in ('work_mem', 'random_page_cost', 'lock_timeout', 'application_name', 'enable_sort')
order by name;

select count(*) from (select n::text from generate_series(1, 100) n order by 1) s;

select count(*) from (select n::text from generate_series(1, 10000) n order by 1) s;

select count(distinct n) from generate_series(1, 10000) n;

select count(*) from generate_series(1, 10000) a join generate_series(1, 10000) b on a = b;

reset work_mem;
select count(*) from (select n::text from generate_series(1, 10000) n order by 1) s;

set random_page_cost = 1.10;
show random_page_cost;

set random_page_cost = -1;

set enable_seqscan = off;
show enable_seqscan;

set session_replication_role = replica;

set role = 'none';
show role;

select count(*) from pg_settings where name in ('role', 'is_superuser', 'session_authorization');
