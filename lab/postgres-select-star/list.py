"""list.py COLUMNS: the articles of a shelf, with names and prices."""
import random
import sys

import pg
import web


def work():
    rows = pg.query(f"SELECT {sys.argv[1]} FROM articles WHERE shelf = {random.randrange(50)}")
    return b"%d articles\n" % len(rows)


web.serve(8000, work)
