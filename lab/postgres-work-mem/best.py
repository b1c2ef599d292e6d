"""Shows the customers who ordered most: makes 60,000 orders, and then asks for each request."""
import pg
import web

pg.query("CREATE TABLE orders AS SELECT i AS id, md5((i % 15000)::text) AS customer, i % 97 AS price FROM generate_series(1, 60000) i")
pg.query("ANALYZE orders")
BEST = "SELECT customer, sum(price) AS s FROM orders GROUP BY customer ORDER BY s DESC LIMIT 10"
web.serve(8000, lambda: b"%d customers\n" % len(pg.query(BEST)))
