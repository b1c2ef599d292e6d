"""Opens a cart for each request and deletes it again (serve); makes the tables, with an index or none (fill INDEX)."""
import itertools
import sys

import pg
import web

numbers = itertools.count(1_000_000)


def fill(index):
    c = pg.Connection()
    c.query("CREATE TABLE carts (id int PRIMARY KEY, visitor text)")
    c.query("CREATE TABLE items (id int PRIMARY KEY, cart int REFERENCES carts, goods text)")
    c.query("INSERT INTO carts SELECT n, 'visitor ' || n FROM generate_series(1, 30000) n")
    c.query("INSERT INTO items SELECT n, 1 + n % 30000, 'goods ' || n FROM generate_series(1, 150000) n")
    if index:
        c.query(index)
    c.query("VACUUM ANALYZE")


def work():
    n = next(numbers)
    pg.query(f"INSERT INTO carts VALUES ({n}, 'visitor')")
    pg.query(f"DELETE FROM carts WHERE id = {n}")
    return b"closed\n"


if sys.argv[1] == "fill":
    fill(sys.argv[2])
else:
    web.serve(8000, work)
