-- Cursors by SQL, and those of FETCH_COUNT.
BEGIN;
DECLARE named SCROLL CURSOR FOR SELECT n FROM generate_series(1, 20) n;
FETCH 3 FROM named;
FETCH named;
FETCH BACKWARD 2 FROM named;
MOVE ABSOLUTE 10 IN named;
FETCH PRIOR FROM named;
FETCH RELATIVE 3 FROM named;
FETCH LAST FROM named;
FETCH ALL FROM named;
SELECT name, is_holdable, is_scrollable FROM pg_cursors WHERE name = 'named';
CLOSE named;
DECLARE forward NO SCROLL CURSOR FOR SELECT 1 AS n;
FETCH FORWARD ALL FROM forward;
FETCH BACKWARD FROM forward;
ROLLBACK;
DECLARE outside CURSOR FOR SELECT 1;
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT n FROM generate_series(1, 3) n;
COMMIT;
FETCH 2 FROM held;
CLOSE held;
FETCH 1 FROM held;
\set FETCH_COUNT 3
SELECT n, n * n AS square FROM generate_series(1, 8) n;
SELECT 12 / (5 - n) AS part FROM generate_series(1, 8) n;
