"""A shop that looks one article up for every request; and a report beside it: shop.py fill|serve|report."""
import random
import sys
import time

import pg
import web


def fill():
    c = pg.Connection()
    c.query("CREATE TABLE articles (id int PRIMARY KEY, name text, price int)")
    c.query("INSERT INTO articles SELECT i, md5(i::text), i % 997 FROM generate_series(1, 60000) i")
    c.query("ANALYZE articles")


def report():
    c = pg.Connection()
    c.query("SET work_mem = '64kB'")
    while True:
        c.query("SELECT name, price FROM (SELECT * FROM articles WHERE price > 10 ORDER BY name, price DESC) a OFFSET 59000")
        time.sleep(1.5)


def work():
    pg.query("SELECT name, price FROM articles WHERE id = %d" % random.randrange(1, 60001))
    return b"an article\n"


{"fill": fill, "report": report, "serve": lambda: web.serve(8000, work)}[sys.argv[1]]()
