"""Sums up the orders of a customer for every request."""
import random

import pg
import web

first = pg.Connection()
first.query("CREATE TABLE orders AS SELECT n AS id, n % 30000 AS customer, n % 7 AS kind, n * 7 % 100 AS total FROM generate_series(1, 300000) n")
first.query("CREATE INDEX ON orders (customer)")
first.query("ANALYZE orders")
first.close()


def work():
    rows = pg.query(
        "SELECT kind, count(*), sum(total * 119 / 100), max(CASE WHEN total > 50 THEN total ELSE id END)"
        f" FROM orders WHERE customer = {random.randrange(30000)} AND total + id > 3 GROUP BY kind ORDER BY kind"
    )
    return b"%d kinds\n" % len(rows)


web.serve(8000, work)
