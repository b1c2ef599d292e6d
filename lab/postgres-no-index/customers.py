"""Looks up the orders of a customer for every request."""
import random
import sys

import pg
import web

first = pg.Connection()
first.query("CREATE TABLE orders AS SELECT n AS id, n % 30000 AS customer, n * 7 % 100 AS total FROM generate_series(1, 300000) n")
if sys.argv[1] == "yes":
    first.query("CREATE INDEX ON orders (customer)")
first.query("ANALYZE orders")
first.close()


def work():
    rows = pg.query(f"SELECT id, total FROM orders WHERE customer = {random.randrange(30000)}")
    return b"%d orders\n" % len(rows)


web.serve(8000, work)
