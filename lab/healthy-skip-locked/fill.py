"""A shop's orders, and the jobs of its mailers."""
import pg

pg.query("CREATE TABLE orders (id integer PRIMARY KEY, customer integer, text varchar)")
pg.query("INSERT INTO orders SELECT n, n % 6000, md5(n::text) FROM generate_series(1, 60000) n")
pg.query("CREATE INDEX ON orders (customer)")
pg.query("CREATE TABLE jobs (id serial PRIMARY KEY, address varchar)")
pg.query("INSERT INTO jobs (address) SELECT 'customer' || n || '@example.com' FROM generate_series(1, 200) n")
pg.query("VACUUM ANALYZE")
