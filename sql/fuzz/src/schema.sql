create table t (a int primary key, b text not null default 'x', n bigint, f float8, at timestamptz, v varchar(5), raw bytea, ok bool);
create table u (id serial primary key, t_a int references t on delete cascade, price numeric(10, 2) check (price >= 0), day date, tags text[], doc jsonb);
create unique index u_day on u (day desc, id);
create index u_lower on t (lower(b)) include (n) where ok;
create table g (k uuid, c char(3), twice int generated always as (small * 2) stored, small int2, span interval, at time, tz timetz, primary key (k, c));
create view w as select t.a, t.b, u.price from t join u on u.t_a = t.a;
create sequence s;
create schema other;
create table other.t (x int, y json);
