-- PREPARE and EXECUTE, and the extended protocol that \gdesc speaks.
PREPARE plus (int, text) AS SELECT $1 + 1 AS sum, $2 AS name;
EXECUTE plus (41, 'x');
EXECUTE plus ('1', NULL);
EXECUTE plus (1);
EXECUTE plus ('word', 'x');
PREPARE plus AS SELECT 1;
SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements;
PREPARE untyped AS SELECT $1 || 'y' AS text;
EXECUTE untyped ('x');
DEALLOCATE plus;
EXECUTE plus (1, 'x');
SET client_min_messages TO warning;
DROP TABLE IF EXISTS psql_prepared;
RESET client_min_messages;
CREATE TABLE psql_prepared (id int PRIMARY KEY, n numeric(10, 2));
PREPARE fill (int, numeric) AS INSERT INTO psql_prepared VALUES ($1, $2) RETURNING *;
EXECUTE fill (1, 1.005);
EXECUTE fill (1, 2);
SELECT id, n, n::text AS text, now() AS now, ARRAY[id] AS ids, NULL AS nothing FROM psql_prepared \gdesc
DEALLOCATE ALL;
SELECT count(*) FROM pg_prepared_statements;
DROP TABLE psql_prepared;
