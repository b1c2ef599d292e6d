#!/bin/sh
# 400,000 orders, of which 60 are open; there is an index on what is asked for.
until pg_isready -q -h 127.0.0.1; do sleep 0.1; done
exec psql -q -h 127.0.0.1 -U postgres -v ON_ERROR_STOP=1 -c "
CREATE TABLE orders AS SELECT i AS id, CASE WHEN i % 6600 = 1 THEN 'open' WHEN i % 50 = 0 THEN 'returned' ELSE 'done' END AS status, i % 900 AS total FROM generate_series(1, 400000) i;
ALTER TABLE orders ADD PRIMARY KEY (id);
CREATE INDEX orders_status ON orders (status);" -c "VACUUM ANALYZE orders;"
