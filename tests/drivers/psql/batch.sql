-- Several statements in one message are one transaction; \gexec runs what a query returns.
SET client_min_messages TO warning;
DROP TABLE IF EXISTS psql_batch;
RESET client_min_messages;
CREATE TABLE psql_batch (id int PRIMARY KEY, name text);
INSERT INTO psql_batch VALUES (1, 'one')\; INSERT INTO psql_batch VALUES (2, 'two')\; SELECT count(*) FROM psql_batch;
INSERT INTO psql_batch VALUES (3, 'three')\; SELECT 1 / 0\; INSERT INTO psql_batch VALUES (4, 'four');
SELECT * FROM psql_batch ORDER BY id;
SELECT format('INSERT INTO psql_batch VALUES (%s, %L)', n, 'name ' || n) FROM generate_series(10, 12) n \gexec
SELECT id AS last, name FROM psql_batch ORDER BY id DESC LIMIT 1 \gset
\echo :last :name
BEGIN\; INSERT INTO psql_batch VALUES (20, NULL)\; COMMIT\; INSERT INTO psql_batch VALUES (21, NULL)\; SELECT 1 / 0;
SELECT id FROM psql_batch WHERE id >= 20 ORDER BY id;
DROP TABLE psql_batch;
