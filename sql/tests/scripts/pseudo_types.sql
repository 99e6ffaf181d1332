# No column has a pseudo-type: no node could read the catalog with it.

create table q (id int primary key, s int, v text);
create table pt (a record);
create table pt (a int, b unknown);
create table pt (a int, b anyarray);
create table pt (a void);
create table pt (a cstring);
create table pt (a record[]);
create table pt (a int);
alter table pt add b record;
alter table pt alter a type record using row(1);
create view pv as select pg_sleep(0) x;
create view pv as select row(a, a) from pt;
create view pv as select 'x'::cstring c;
create view pv as select array_agg(row(a)) c from pt;
create domain pd as record[];
create temp view pv as select coalesce(pt, pt) z from pt;
create table ct as select array_agg(q) x from q;
select null::cstring into ct;
create table ix (a int primary key, b int);
create index on ix ((row(a, b)));
create index on ix ((array[row(a, b)]));
create index on ix ((null::void));
----
CREATE TABLE
ERROR 42P16: column "a" has pseudo-type record
ERROR 42P16: column "b" has pseudo-type unknown
ERROR 42P16: column "b" has pseudo-type anyarray
ERROR 42P16: column "a" has pseudo-type void
ERROR 42P16: column "a" has pseudo-type cstring
ERROR 42P16: column "a" has pseudo-type record[]
CREATE TABLE
ERROR 42P16: column "b" has pseudo-type record
ERROR 42P16: column "a" has pseudo-type record
ERROR 42P16: column "x" has pseudo-type void
ERROR 42P16: column "row" has pseudo-type record
ERROR 42P16: column "c" has pseudo-type cstring
ERROR 42P16: column "c" has pseudo-type record[]
ERROR 42804: "record[]" is not a valid base type for a domain
ERROR 42P16: column "z" has pseudo-type record
ERROR 42P16: column "x" has pseudo-type record[]
ERROR 42P16: column "cstring" has pseudo-type cstring
CREATE TABLE
ERROR 42P16: column "row" has pseudo-type record
ERROR 42P16: column "array" has pseudo-type record[]
ERROR 42P16: column "void" has pseudo-type void
