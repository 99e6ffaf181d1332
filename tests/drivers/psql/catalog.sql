-- The commands of psql that describe objects. Two cannot show what PostgreSQL shows: \df lower lists lower(anyrange),
-- and \sv has all columns of a view qualified.
SET client_min_messages TO warning;
DROP VIEW IF EXISTS cat_view;
DROP TABLE IF EXISTS cat_books, cat_authors;
DROP DOMAIN IF EXISTS cat_pages;
DROP TYPE IF EXISTS cat_mood;
RESET client_min_messages;
CREATE TABLE cat_authors (id serial PRIMARY KEY, name varchar(30) NOT NULL DEFAULT 'none' UNIQUE, born date);
CREATE TABLE cat_books (author int REFERENCES cat_authors ON DELETE CASCADE, id bigint, price numeric(10, 2) DEFAULT 1.5,
    tags text[], CONSTRAINT cat_price CHECK (price > 0), PRIMARY KEY (author, id));
CREATE INDEX cat_books_price ON cat_books (price DESC, id);
CREATE VIEW cat_view AS SELECT name, born FROM cat_authors WHERE id > 1;
CREATE TYPE cat_mood AS ENUM ('sad', 'ok');
CREATE DOMAIN cat_pages AS int NOT NULL DEFAULT 100 CHECK (VALUE > 0);
COMMENT ON TYPE cat_mood IS 'how it ends';
COMMENT ON TABLE cat_books IS 'what authors wrote';
COMMENT ON COLUMN cat_books.price IS 'in euro';
\d cat_*
\d+ cat_books
\dt cat_*
\dt+ missing
\di cat_*
\ds cat_*
\dv cat_*
\dn public
\du nobody
\df initcap
\dT int4
\dT cat_*
\dT+ cat_*
\dD cat_*
\l missing
\dp cat_authors
\dt pg_catalog.pg_cl*
DROP VIEW cat_view;
DROP TABLE cat_books, cat_authors;
DROP DOMAIN cat_pages;
DROP TYPE cat_mood;
\d cat_authors
