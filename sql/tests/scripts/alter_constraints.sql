# A constraint that is dropped and added again in one statement keeps its name.
create table b (id int primary key, u int unique, v int, constraint named unique (v));
insert into b values (1, 1, 1), (2, 2, 2);
alter table b drop constraint b_pkey, add primary key (id);
alter table b add unique (u), drop constraint b_u_key;
alter table b drop constraint named, add constraint named unique (v, u);
alter table b drop constraint named, drop constraint b_u_key, add constraint named unique (u), add constraint b_u_key unique (v);
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'b'::regclass order by 1;
select indexrelid::regclass from pg_index where indrelid = 'b'::regclass order by 1;
insert into b values (1, 3, 3);
insert into b values (3, 1, 3);
insert into b values (3, 3, 1);
drop index b_u_key;
alter table b drop column u, add column u int unique;
alter table b add unique (u);
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'b'::regclass order by 1;
create table other (a int constraint named2 unique);
alter table b drop constraint b_pkey, add constraint named2 primary key (id);
select 'b_pkey'::regclass;
alter table b add constraint named2 unique (v), drop constraint b_pkey;
begin;
alter table b drop constraint b_pkey, add primary key (v);
rollback;
create unique index b_pkey on other (a);
alter table b drop constraint b_pkey;
create unique index b_pkey on other (a);
alter table b add primary key (id);
select conname from pg_constraint where conrelid = 'b'::regclass order by 1;
----
CREATE TABLE
INSERT 0 2
ALTER TABLE
ALTER TABLE
ALTER TABLE
ALTER TABLE
conname:name|contype:char|pg_get_constraintdef:text
b_pkey|p|PRIMARY KEY (id)
b_u_key|u|UNIQUE (v)
named|u|UNIQUE (u)
indexrelid:regclass
b_pkey
named
b_u_key
ERROR 23505: duplicate key value violates unique constraint "b_pkey"
DETAIL: Key (id)=(1) already exists.
ERROR 23505: duplicate key value violates unique constraint "named"
DETAIL: Key (u)=(1) already exists.
ERROR 23505: duplicate key value violates unique constraint "b_u_key"
DETAIL: Key (v)=(1) already exists.
ERROR 2BP01: cannot drop index b_u_key because constraint b_u_key on table b requires it
HINT: You can drop constraint b_u_key on table b instead.
ALTER TABLE
ALTER TABLE
conname:name|pg_get_constraintdef:text
b_pkey|PRIMARY KEY (id)
b_u_key|UNIQUE (v)
b_u_key1|UNIQUE (u)
b_u_key2|UNIQUE (u)
CREATE TABLE
ERROR 42P07: relation "named2" already exists
regclass:regclass
b_pkey
ERROR 42P07: relation "named2" already exists
BEGIN
ALTER TABLE
ROLLBACK
ERROR 42P07: relation "b_pkey" already exists
ALTER TABLE
CREATE INDEX
ALTER TABLE
conname:name
b_pkey1
b_u_key
b_u_key1
b_u_key2

# Keys come before foreign keys, those of new columns among them.
create table f (a int);
insert into f values (5), (6);
alter table f add primary key (a), add column b int default 5 references f (a);
alter table f add column c int default 7 references f (a);
alter table f add column c int references f (d), add column d int unique;
alter table f add column e int default 1 references f (g), add column g int default 1 primary key;
alter table f add constraint late foreign key (c) references f (a), add column h int default 6 references f;
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'f'::regclass order by 1;
select * from f order by a;
delete from f where a = 5;
insert into f (a, b) values (9, 8);
----
CREATE TABLE
INSERT 0 2
ALTER TABLE
ERROR 23503: insert or update on table "f" violates foreign key constraint "f_c_fkey"
DETAIL: Key (c)=(7) is not present in table "f".
ALTER TABLE
ERROR 42P16: multiple primary keys for table "f" are not allowed
ALTER TABLE
conname:name|pg_get_constraintdef:text
f_b_fkey|FOREIGN KEY (b) REFERENCES f(a)
f_c_fkey|FOREIGN KEY (c) REFERENCES f(d)
f_d_key|UNIQUE (d)
f_h_fkey|FOREIGN KEY (h) REFERENCES f(a)
f_pkey|PRIMARY KEY (a)
late|FOREIGN KEY (c) REFERENCES f(a)
a:int4|b:int4|c:int4|d:int4|h:int4
5|5|NULL|NULL|6
6|5|NULL|NULL|6
ERROR 23503: update or delete on table "f" violates foreign key constraint "f_b_fkey" on table "f"
DETAIL: Key (a)=(5) is still referenced from table "f".
ERROR 23503: insert or update on table "f" violates foreign key constraint "f_b_fkey"
DETAIL: Key (b)=(8) is not present in table "f".
