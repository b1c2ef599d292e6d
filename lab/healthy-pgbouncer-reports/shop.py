"""A shop: each request looks up one of a thousand articles."""
import random

import pg
import web

setup = pg.Connection()
setup.query("CREATE TABLE articles (id int PRIMARY KEY, name text)")
setup.query("INSERT INTO articles SELECT i, 'lamp ' || i FROM generate_series(1, 1000) i")
setup.close()
web.serve(8000, lambda: b"%d\n" % len(pg.query(f"SELECT name FROM articles WHERE id = {random.randrange(1, 1001)}")))
