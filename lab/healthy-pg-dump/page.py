"""A customer's orders."""
import random

import pg
import web


def work():
    rows = pg.query(f"SELECT id, at, text FROM orders WHERE customer = {random.randrange(60000)}")
    return b"%d orders\n" % len(rows)


web.serve(8000, work)
