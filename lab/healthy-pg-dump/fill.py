"""A shop's tables: 600,000 orders."""
import pg

pg.query("CREATE TABLE orders (id integer PRIMARY KEY, customer integer, at timestamp, text varchar)")
pg.query("INSERT INTO orders SELECT n, n % 60000, now(), md5(n::text) || md5((n+1)::text) FROM generate_series(1, 600000) n")
pg.query("CREATE INDEX ON orders (customer)")
pg.query("ANALYZE orders")
