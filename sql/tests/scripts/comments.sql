# COMMENT, and where comments are shown.
create schema app;
create table c (id int primary key, b text unique, n int check (n > 0), constraint c_self foreign key (n) references c);
create table app.d (x int);
create index c_n on c (n);
create view v as select id, b from c;
create sequence s;
create type mood as enum ('sad', 'happy');
comment on table c is 'a table';
comment on column c.b is 'its column';
comment on column public.c.n is 'another one';
comment on index c_n is 'an index';
comment on index c_pkey is 'the index of a key';
comment on constraint c_pkey on c is 'the key';
comment on constraint c_n_check on public.c is 'a check';
comment on constraint c_self on c is 'a foreign key';
comment on view v is 'a view';
comment on column v.b is 'a column of a view';
comment on sequence s is 'a sequence';
comment on schema app is E'a schema\nof two lines';
comment on table app.d is $$it's in a schema$$;
comment on type mood is 'an enum';
comment on database postgres is 'a database';
select obj_description('c'::regclass), col_description('c'::regclass, 2), col_description('c'::regclass, 1), obj_description('c'::regclass, 'pg_class'), obj_description('c'::regclass, 'pg_type');

select obj_description('c_n'::regclass), obj_description('v'::regclass), col_description('v'::regclass, 2), obj_description('s'::regclass, 'pg_class'), obj_description('app'::regnamespace, 'pg_namespace'), obj_description('app.d'::regclass, 'pg_class');

select conname, obj_description(oid, 'pg_constraint') from pg_constraint where conrelid = 'c'::regclass order by 1;

select obj_description('c_pkey'::regclass, 'pg_class'), obj_description('mood'::regtype, 'pg_type'), obj_description('int4'::regtype, 'pg_type'), obj_description(2200, 'pg_namespace'), obj_description(1, 'nothing'), obj_description(null, 'pg_class');

select shobj_description(oid, 'pg_database') from pg_database where datname = 'postgres';

select classoid::regclass, objsubid, description from pg_description where objoid >= 16384 order by 1, 2, 3;

select count(*) from pg_shdescription d join pg_database b on b.oid = d.objoid and d.classoid = 'pg_database'::regclass;

# They change, go, and go with their objects.
comment on table c is 'a better text';
comment on column c.b is null;
comment on view v is '';
select obj_description('c'::regclass), col_description('c'::regclass, 2), obj_description('v'::regclass);

alter table c rename to c2;
alter table c2 rename column n to m;
select obj_description('c2'::regclass), col_description('c2'::regclass, 3);

alter table c2 drop constraint c_n_check;
drop index c_n;
alter table c2 drop column m;
drop sequence s;
select classoid::regclass, objsubid, description from pg_description where objoid >= 16384 order by 1, 2, 3;

begin;
comment on table c2 is 'for a while';
select obj_description('c2'::regclass);
rollback;
select obj_description('c2'::regclass);

begin;
savepoint a;
comment on table c2 is 'for a while';
rollback to a;
commit;
select obj_description('c2'::regclass);

drop view v;
drop table c2;
drop schema app cascade;
drop type mood;
select description from pg_description where objoid >= 16384;

# Errors.
create table t (a int);
create view w as select 1 as one;
comment on table nope is 'x';

comment on table w is 'x';

comment on view t is 'x';

comment on index t is 'x';

comment on sequence t is 'x';

comment on column t.nope is 'x';

comment on column nope.a is 'x';

comment on column a is 'x';

comment on constraint nope on t is 'x';

comment on constraint nope on nope is 'x';

comment on schema nope is 'x';

comment on database nope is 'x';

comment on role postgres is 'x';

comment on table pg_class is 'x';

comment on table t is 5;

# Sequences of columns.
create table owner (a serial, b int generated always as identity);
select classid::regclass, objid::regclass, refobjid::regclass, refobjsubid, deptype from pg_depend where refobjid = 'owner'::regclass and classid = 'pg_class'::regclass order by 2;
