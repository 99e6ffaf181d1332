-- The commands of psql that describe objects.
SET client_min_messages TO warning;
DROP VIEW IF EXISTS cat_view;
DROP TABLE IF EXISTS cat_books, cat_authors;
RESET client_min_messages;
CREATE TABLE cat_authors (id serial PRIMARY KEY, name varchar(30) NOT NULL DEFAULT 'none' UNIQUE, born date);
CREATE TABLE cat_books (author int REFERENCES cat_authors ON DELETE CASCADE, id bigint, price numeric(10, 2) DEFAULT 1.5,
    tags text[], CONSTRAINT cat_price CHECK (price > 0), PRIMARY KEY (author, id));
CREATE INDEX cat_books_price ON cat_books (price DESC, id);
CREATE VIEW cat_view AS SELECT name, born FROM cat_authors WHERE id > 1;
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
\l missing
\dp cat_authors
\dt pg_catalog.pg_cl*
DROP VIEW cat_view;
DROP TABLE cat_books, cat_authors;
\d cat_authors
