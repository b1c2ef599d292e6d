#!/bin/sh
# Twenty thousand articles and their stock.
until pg_isready -q -h 127.0.0.1; do sleep 0.1; done
exec psql -q -h 127.0.0.1 -U postgres -v ON_ERROR_STOP=1 -c "
CREATE TABLE articles AS SELECT i AS id, 'Article ' || i AS name, i % 900 AS price FROM generate_series(1, 20000) i;
CREATE TABLE stock AS SELECT i AS article, i % 50 AS pieces FROM generate_series(1, 20000) i;
ALTER TABLE articles ADD PRIMARY KEY (id);
ALTER TABLE stock ADD PRIMARY KEY (article);
ANALYZE;"
