-- Connections, their settings and notices.
SELECT :SERVER_VERSION_NUM >= 150000 AS version, :'ENCODING' AS encoding, :'USER' = current_user AS "user",
    :'DBNAME' = current_database() AS database, pg_backend_pid() > 0 AS pid;
SHOW application_name;
SELECT 'плов ☕ 𝄞' AS text;
DROP TABLE IF EXISTS missing;
;
SET search_path TO nowhere, public;
SHOW search_path;
\setenv PGOPTIONS '-c statement_timeout=70s -c application_name=drivers'
\c -
SHOW statement_timeout;
SHOW application_name;
SET application_name TO 'changed';
RESET application_name;
SHOW application_name;
\encoding
\setenv PGOPTIONS ''
\! psql -X -d missing -c 'SELECT 1' 2>&1 | grep -o 'FATAL:.*'
