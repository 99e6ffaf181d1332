-- COPY and \copy, in and out, in text, CSV and binary.
SET client_min_messages TO warning;
DROP TABLE IF EXISTS psql_copy;
RESET client_min_messages;
CREATE TABLE psql_copy (id int PRIMARY KEY, name text, price numeric(10, 2));
COPY psql_copy FROM STDIN;
1	plain	1.5
2	tab\t, back\\slash, line\n	\N
3		-0.01
\.
COPY psql_copy TO STDOUT;
COPY (SELECT * FROM psql_copy ORDER BY id DESC) TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE (name));
\copy psql_copy to 'copy.csv' csv header
\copy psql_copy to 'copy.bin' binary
TRUNCATE psql_copy;
\copy psql_copy from 'copy.csv' with (format csv, header match)
SELECT * FROM psql_copy ORDER BY id;
TRUNCATE psql_copy;
\copy psql_copy (id, name, price) from 'copy.bin' binary
SELECT count(*), sum(price) FROM psql_copy;
COPY psql_copy (id, name) FROM STDIN (DELIMITER '|', NULL 'none');
4|none
5|five
\.
COPY psql_copy FROM STDIN;
6	six	6
word	seven	7
\.
COPY psql_copy FROM STDIN;
6	six
\.
COPY psql_copy FROM STDIN;
1	again	1
\.
COPY missing FROM STDIN;
COPY psql_copy FROM STDIN (FORMAT nothing);
SELECT id, name FROM psql_copy WHERE id > 3 ORDER BY id;
DROP TABLE psql_copy;
