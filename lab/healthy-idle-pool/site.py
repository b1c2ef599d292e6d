"""Shows an article. Two connections to the database are enough for it."""
import queue
import random

import pg
import web

pool = queue.LifoQueue()
for _ in range(2):
    pool.put(pg.Connection())
first = pool.get()
first.query("CREATE TABLE articles (id int PRIMARY KEY, name text)")
first.query("INSERT INTO articles SELECT n, md5(n::text) FROM generate_series(1, 10000) n")
first.query("ANALYZE articles")
pool.put(first)


def work():
    c = pool.get()
    rows = c.query("SELECT name FROM articles WHERE id = %d" % random.randint(1, 10000))
    pool.put(c)
    return rows[0]


web.serve(8000, work)
