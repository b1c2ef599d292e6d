"""Shows an article. Keeps its connections to the database, or does not: shop.py KEEP (yes, no)."""
import random
import sys

import pg
import web

first = pg.Connection()
first.query("CREATE TABLE articles (id int PRIMARY KEY, name text)")
first.query("INSERT INTO articles SELECT n, md5(n::text) FROM generate_series(1, 10000) n")
first.query("ANALYZE articles")
first.close()
ARTICLE = "SELECT name FROM articles WHERE id = %d"


def work():
    text = ARTICLE % random.randint(1, 10000)
    if sys.argv[1] == "yes":
        return pg.query(text)[0]
    c = pg.Connection()
    rows = c.query(text)
    c.close()
    return rows[0]


web.serve(8000, work)
