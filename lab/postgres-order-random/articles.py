"""Shows four articles for every request, by chance or from a number on."""
import random
import sys

import pg
import web

first = pg.Connection()
first.query("CREATE TABLE articles AS SELECT n AS id, 'article ' || n AS name, n * 7 % 100 AS price FROM generate_series(1, 100000) n")
first.query("CREATE UNIQUE INDEX ON articles (id)")
first.query("ANALYZE articles")
first.close()


def work():
    pick = "ORDER BY random()" if sys.argv[1] == "by chance" else f"WHERE id >= {random.randrange(1, 99990)} ORDER BY id"
    rows = pg.query(f"SELECT id, name, price FROM articles {pick} LIMIT 4")
    return b"%d articles\n" % len(rows)


web.serve(8000, work)
