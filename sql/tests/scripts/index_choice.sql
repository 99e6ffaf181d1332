# Paths and methods of joins by statistics. Without ANALYZE the rules count.
create table orders (id int primary key, customer int not null, state text, made date, note text);
create index orders_customer on orders (customer);
create index orders_state on orders (state);
create index orders_made on orders (made);
create table customers (id int primary key, city text, name text);
insert into customers select i, 'city' || i % 5, 'name' || i from generate_series(1, 500) i;
insert into orders select i, i % 500 + 1, case when i % 100 = 0 then 'open' else 'closed' end, date '2020-01-01' + i % 1000, 'n' from generate_series(1, 4000) i;
explain select * from orders where state = 'closed';
explain select * from orders where state = 'closed' and customer = 7;
explain select * from orders where made > '2020-06-01';
explain select count(*) from orders o join customers c on c.id = o.customer;
analyze orders, customers;
----

# Equality: a rare value by its index, a common one by the rows. A parameter takes the average.
explain select * from orders where state = 'open';
explain select * from orders where state = 'closed';
explain select * from orders where state = 'none';
explain select * from orders where state = 'closed' and customer = 7;
explain select * from orders where state <> 'closed';
explain select * from orders where note is null;
explain select * from orders where note is not null and state in ('open', 'none');
explain select * from orders where customer in (1, 2, 3);
explain select * from orders where state = 'open' or customer = 7;
\params 7
explain select * from orders where customer = $1;
----

# Ranges by the histogram: few rows by the index, many by the table.
explain select * from orders where made > '2022-09-20';
explain select * from orders where made > '2020-02-01';
explain select * from orders where made between '2020-02-01' and '2020-02-10';
explain select made from orders where made > '2020-02-01';
explain select * from orders where id between 100 and 199;
explain select * from orders where id between 100 and 3900 and state = 'open';
----

# Order, LIMIT, point gets.
explain select * from orders order by made limit 5;
explain select * from orders order by made;
explain select * from orders where state = 'closed' order by made limit 5;
explain select * from orders where state = 'open' order by id;
explain select * from orders where id = 5;
explain select * from orders where id in (5, 6) and state = 'open';
explain select max(made) from orders;
explain (costs off) select * from orders where state = 'open';
explain (format json) select state, count(*) from orders where customer = 3 group by state;
----

# Joins: look-ups if few rows are on the other side, else a hash table of the smaller side.
explain select * from orders o join customers c on c.id = o.customer where o.state = 'open';
explain select * from orders o join customers c on c.id = o.customer;
explain select * from customers c join orders o on c.id = o.customer;
explain select * from customers c join orders o on c.id = o.customer where c.name = 'name7';
explain select * from customers c left join orders o on c.id = o.customer where c.city = 'city1';
explain select * from customers c left join orders o on c.id = o.customer where c.id = 3;
select count(*), min(o.id), max(c.name) from customers c join orders o on c.id = o.customer;
select count(*), min(o.id), max(c.name) from orders o join customers c on c.id = o.customer and o.id > c.id;
select c.id, o.id, o.customer from customers c join orders o on c.id = o.customer where o.id < 4 order by 2;
explain update orders set note = 'x' where state = 'closed';
explain delete from orders where state = 'open';
----

# A prepared statement is planned again when there are new statistics.
prepare p as select * from orders where state = 'closed';
explain execute p;
delete from orders where state = 'closed' and id > 20;
explain execute p;
analyze orders;
explain execute p;
truncate orders;
explain execute p;
----
