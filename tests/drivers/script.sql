-- The statements and results that all drivers must agree on. A statement is one line; a backslash at the end of a line
-- continues it. The lines `--> ` after a statement are its rows, with columns separated by `|` and NULL as `\N`. A line
-- `--! ` is the SQLSTATE of its error. A line `--$ ` runs the statement with these values for $1, $2, ..., separated by
-- `|`, in the order of their occurrence. See tests/cluster/drivers.rs.
DROP TABLE IF EXISTS people
CREATE TABLE people (id int PRIMARY KEY, name varchar(20) NOT NULL, born timestamptz, height float8, \
admin bool DEFAULT false, photo bytea, visits bigint DEFAULT 0, shoe smallint)
INSERT INTO people (id, name, born, height, photo, shoe) VALUES \
(1, 'Ada', '1815-12-10 12:00:00+00', 1.65, '\xdeadbeef', 37), \
(2, 'Grace', '1906-12-09 00:00:00.25+00', 1.68, NULL, NULL)
INSERT INTO people (id, name, admin, visits) VALUES (3, 'Björn', true, 9223372036854775807)
SELECT id, name, admin, visits, shoe FROM people ORDER BY id
--> 1|Ada|false|0|37
--> 2|Grace|false|0|\N
--> 3|Björn|true|9223372036854775807|\N
SELECT name FROM people WHERE id = 2
--> Grace
SELECT id, born, photo FROM people ORDER BY id
--> 1|1815-12-10 12:00:00+00|\xdeadbeef
--> 2|1906-12-09 00:00:00.25+00|\N
--> 3|\N|\N
UPDATE people SET born = '2024-02-29 23:59:59.999999-08:00', photo = '\x00ff5c27' WHERE id = 3
SELECT born, photo FROM people WHERE born > '2024-03-01 07:59:59+00' AND photo = '\x00ff5c27'
--> 2024-03-01 07:59:59.999999+00|\x00ff5c27
SELECT born, photo FROM people WHERE id = 1 AND born = '1815-12-10 17:30:00+05:30'
--> 1815-12-10 12:00:00+00|\xdeadbeef
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
INSERT INTO people (id, name, born, height, admin, photo, visits, shoe) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
--$ 20|'Kur''t'|'1906-04-28 11:59:59.5+01'|1.5|true|'\x00ff'|9007199254740993|41
--$ 21|'Rózsa'|NULL|NULL|false|NULL|-1|NULL
SELECT name, born, height, admin, photo, visits, shoe FROM people WHERE id = $1
--$ 20
--> Kur't|1906-04-28 10:59:59.5+00|1.5|true|\x00ff|9007199254740993|41
--$ 21
--> Rózsa|\N|\N|false|\N|-1|\N
--$ 22
SELECT id FROM people WHERE name = $1 AND visits BETWEEN $2 AND $3 OR photo = $4 ORDER BY id LIMIT $5
--$ 'Rózsa'|-5|5|'\x00ff'|10
--> 20
--> 21
--$ 'Rózsa'|0|5|'\x01'|10
UPDATE people SET visits = visits + $1, name = name || $2 WHERE id = $3
--$ 7|' Péter'|21
SELECT visits, name FROM people WHERE born IS NOT DISTINCT FROM $1 AND id > $2
--$ NULL|20
--> 6|Rózsa Péter
SELECT height IN ($1, $2), $3 || 'x' FROM people WHERE id = 20
--$ 1.5|2.5|'y'
--> true|yx
DELETE FROM people WHERE id IN ($1, $2)
--$ 20|21
BEGIN
INSERT INTO people (id, name) VALUES ($1, $2)
--$ 30|'gone'
SELECT 1 / $1
--$ 0
--! 22012
SELECT 'nothing runs in a failed block'
--! 25P02
INSERT INTO people (id, name) VALUES ($1, $2)
--$ 31|'neither'
--! 25P02
COMMIT
SELECT count(*) FROM people WHERE id >= 20
--> 0
INSERT INTO people (id, name) VALUES ($1, $2)
--$ 1|'again'
--! 23505
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
