"""Shows how often a product was sold, from a view that is computed anew now and then."""
import random

import pg
import web

first = pg.Connection()
for text in """CREATE TABLE sales (id int PRIMARY KEY, product int NOT NULL, pieces int NOT NULL)
INSERT INTO sales SELECT n, n % 500, n % 7 FROM generate_series(1, 600000) n
CREATE MATERIALIZED VIEW sold AS SELECT product, sum(pieces) AS pieces, count(DISTINCT md5(id::text)) AS sales FROM sales GROUP BY product
CREATE UNIQUE INDEX sold_product ON sold (product)
ANALYZE""".splitlines():
    first.query(text)
first.close()


def work():
    rows = pg.query(f"SELECT pieces FROM sold WHERE product = {random.randrange(500)}")
    return rows[0][6:] + b"\n"


web.serve(8000, work)
