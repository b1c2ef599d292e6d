"""A shop's orders: 1,000,000."""
import pg

pg.query("CREATE TABLE orders (id integer PRIMARY KEY, customer integer, price numeric, text varchar)")
pg.query("INSERT INTO orders SELECT n, n % 60000, n % 977, md5(n::text) FROM generate_series(1, 1000000) n")
pg.query("CREATE INDEX ON orders (customer)")
pg.query("VACUUM ANALYZE orders")
