"""Shows a product."""
import random

import pg
import web


def product():
    return pg.query(f"SELECT name FROM products WHERE id = {random.randint(1, 10000)}")[0][-32:] + b"\n"


web.serve(8000, product)
