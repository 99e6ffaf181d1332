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
CREATE TABLE
CREATE INDEX
CREATE INDEX
CREATE INDEX
CREATE TABLE
INSERT 0 500
INSERT 0 4000
Index Scan using orders_state on orders
  Index Cond: (state = 'closed'::text)
Index Scan using orders_customer on orders
  Index Cond: (customer = 7)
  Filter: (state = 'closed'::text)
Index Scan using orders_made on orders
  Index Cond: (made > '2020-06-01'::date)
Aggregate
  ->  Hash Join
        Hash Cond: (o.customer = c.id)
        ->  Full Scan on orders o
        ->  Full Scan on customers c
ANALYZE

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
Index Scan using orders_state on orders  (rows=40)
  Index Cond: (state = 'open'::text)
Full Scan on orders  (rows=3960)
  Filter: (state = 'closed'::text)
Index Scan using orders_state on orders  (rows=1)
  Index Cond: (state = 'none'::text)
Index Scan using orders_customer on orders  (rows=8)
  Index Cond: (customer = 7)
  Filter: (state = 'closed'::text)
Full Scan on orders  (rows=40)
  Filter: (state <> 'closed'::text)
Full Scan on orders  (rows=1)
  Filter: (note IS NULL)
Index Scan using orders_state on orders  (rows=40)
  Index Cond: (state IN ('open'::text, 'none'::text))
  Filter: (note IS NOT NULL)
Index Scan using orders_customer on orders  (rows=24)
  Index Cond: (customer IN (1, 2, 3))
Full Scan on orders  (rows=48)
  Filter: ((state = 'open'::text) OR (customer = 7))
params int4
Index Scan using orders_customer on orders  (rows=8)
  Index Cond: (customer = $1)

# Ranges by the histogram: few rows by the index, many by the table.
explain select * from orders where made > '2022-09-20';
explain select * from orders where made > '2020-02-01';
explain select * from orders where made between '2020-02-01' and '2020-02-10';
explain select made from orders where made > '2020-02-01';
explain select * from orders where id between 100 and 199;
explain select * from orders where id between 100 and 3900 and state = 'open';
----
Index Scan using orders_made on orders  (rows=24)
  Index Cond: (made > '2022-09-20'::date)
Full Scan on orders  (rows=3872)
  Filter: (made > '2020-02-01'::date)
Index Scan using orders_made on orders  (rows=36)
  Index Cond: ((made >= '2020-02-01'::date) AND (made <= '2020-02-10'::date))
Index Only Scan using orders_made on orders  (rows=3872)
  Index Cond: (made > '2020-02-01'::date)
Range Scan on orders  (rows=99)
  Key: ((id >= 100) AND (id <= 199))
Index Scan using orders_state on orders  (rows=38)
  Index Cond: (state = 'open'::text)
  Filter: ((id >= 100) AND (id <= 3900))

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
Limit  (rows=5)
  ->  Index Scan using orders_made on orders  (rows=4000)
Sort  (rows=4000)
  Sort Key: made
  ->  Full Scan on orders  (rows=4000)
Limit  (rows=5)
  ->  Index Scan using orders_made on orders  (rows=3960)
        Filter: (state = 'closed'::text)
Index Scan using orders_state on orders  (rows=40)
  Index Cond: (state = 'open'::text)
Point Get on orders
  Key: (id = 5)
Point Get on orders
  Key: (id IN (5, 6))
  Filter: (state = 'open'::text)
Aggregate  (rows=1)
  ->  Limit  (rows=1)
        ->  Index Only Scan Backward using orders_made on orders  (rows=4000)
              Index Cond: (made IS NOT NULL)
Index Scan using orders_state on orders
  Index Cond: (state = 'open'::text)
[
  {
    "Plan": {
      "Node Type": "Aggregate",
      "Parallel Aware": false,
      "Async Capable": false,
      "Strategy": "Hashed",
      "Group Key": ["state"],
      "Plans": [
        {
          "Node Type": "Index Scan",
          "Parent Relationship": "Outer",
          "Parallel Aware": false,
          "Async Capable": false,
          "Scan Direction": "Forward",
          "Index Name": "orders_customer",
          "Relation Name": "orders",
          "Alias": "orders",
          "Plan Rows": 8,
          "Index Cond": "(customer = 3)"
        }
      ]
    }
  }
]

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
Nested Loop  (rows=40)
  ->  Index Scan using orders_state on orders o  (rows=40)
        Index Cond: (state = 'open'::text)
  ->  Point Get on customers c
        Key: (id = $0)
Hash Join  (rows=4000)
  Hash Cond: (o.customer = c.id)
  ->  Full Scan on orders o  (rows=4000)
  ->  Full Scan on customers c  (rows=500)
Hash Join  (rows=4000)
  Hash Cond: (c.id = o.customer)
  ->  Full Scan on orders o  (rows=4000)
  ->  Full Scan on customers c  (rows=500)
Nested Loop  (rows=8)
  ->  Full Scan on customers c  (rows=1)
        Filter: (name = 'name7'::text)
  ->  Index Scan using orders_customer on orders o  (rows=8)
        Index Cond: (customer = $0)
Hash Left Join  (rows=800)
  Hash Cond: (c.id = o.customer)
  ->  Full Scan on customers c  (rows=100)
        Filter: (city = 'city1'::text)
  ->  Full Scan on orders o  (rows=4000)
Nested Loop Left Join  (rows=8)
  ->  Point Get on customers c
        Key: (id = 3)
  ->  Index Scan using orders_customer on orders o  (rows=8)
        Index Cond: (customer = $0)
count:int8|min:int4|max:text
4000|1|name99
count:int8|min:int4|max:text
3501|500|name99
id:int4|id:int4|customer:int4
2|1|2
3|2|3
4|3|4
Update on orders
  ->  Full Scan on orders  (rows=3960)
        Filter: (state = 'closed'::text)
Delete on orders
  ->  Index Scan using orders_state on orders  (rows=40)
        Index Cond: (state = 'open'::text)

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
PREPARE
Full Scan on orders  (rows=3960)
  Filter: (state = 'closed'::text)
DELETE 3940
Full Scan on orders  (rows=3960)
  Filter: (state = 'closed'::text)
ANALYZE
Full Scan on orders  (rows=20)
  Filter: (state = 'closed'::text)
TRUNCATE TABLE
Index Scan using orders_state on orders
  Index Cond: (state = 'closed'::text)
