-- What every driver must see alike. A statement is one line; the lines `--> ` after it are its rows, columns separated by `|`, NULL as
-- `\N`; `--! ` is the SQLSTATE that it fails with. See tests/cluster/drivers.rs.
DROP TABLE IF EXISTS people
CREATE TABLE people (id int PRIMARY KEY, name varchar(20) NOT NULL, born timestamptz, height float8, admin bool DEFAULT false, photo bytea, visits bigint DEFAULT 0, shoe smallint)
INSERT INTO people (id, name, born, height, photo, shoe) VALUES (1, 'Ada', '1815-12-10 12:00:00+00', 1.65, '\xdeadbeef', 37), (2, 'Grace', '1906-12-09 00:00:00.25+00', 1.68, NULL, NULL)
INSERT INTO people (id, name, admin, visits) VALUES (3, 'Björn', true, 9223372036854775807)
SELECT id, name, admin, visits, shoe FROM people ORDER BY id
--> 1|Ada|false|0|37
--> 2|Grace|false|0|\N
--> 3|Björn|true|9223372036854775807|\N
SELECT name FROM people WHERE id = 2
--> Grace
SELECT height, height * 2 AS double FROM people WHERE height > 1.66 ORDER BY height
--> 1.68|3.36
SELECT count(*), min(id), max(name) FROM people
--> 3|1|Grace
UPDATE people SET visits = visits + 1 WHERE id IN (1, 2)
SELECT id, visits FROM people WHERE visits = 1 ORDER BY id DESC
--> 2|1
--> 1|1
BEGIN
DELETE FROM people WHERE id = 1
SELECT count(*) FROM people
--> 2
ROLLBACK
SELECT count(*) FROM people
--> 3
BEGIN
INSERT INTO people (id, name) VALUES (4, 'Edsger')
COMMIT
SELECT name FROM people ORDER BY name LIMIT 2 OFFSET 1
--> Björn
--> Edsger
SELECT name IS NULL, born IS NULL FROM people WHERE id = 4
--> false|true
INSERT INTO people (id, name) VALUES (1, 'again')
--! 23505
INSERT INTO people (id) VALUES (9)
--! 23502
SELECT nothing FROM people
--! 42703
SELECT * FROM nowhere
--! 42P01
SELECT 1 / 0
--! 22012
SELEC 1
--! 42601
INSERT INTO people (id, name) VALUES (10, 'a name of more than twenty letters')
--! 22001
SELECT 'still here'
--> still here
DELETE FROM people WHERE id > 2
SELECT id FROM people ORDER BY id
--> 1
--> 2
DROP TABLE people
