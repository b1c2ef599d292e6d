"""Shows what is left of a product, read in a transaction that is rolled back; one request in ten sells one, and commits."""
import random

import pg
import web

first = pg.Connection()
first.query("CREATE TABLE products (id int PRIMARY KEY, name text NOT NULL, left_over int NOT NULL)")
first.query("INSERT INTO products SELECT n, md5(n::text), 1000000 FROM generate_series(1, 10000) n")
first.query("ANALYZE")
first.close()


def work():
    n = random.randrange(1, 10001)
    sells = random.randrange(10) == 0
    pg.query("BEGIN")
    if sells:
        pg.query(f"UPDATE products SET left_over = left_over - 1 WHERE id = {n}")
    rows = pg.query(f"SELECT name, left_over FROM products WHERE id = {n}")
    pg.query("COMMIT" if sells else "ROLLBACK")
    return b"%d rows\n" % len(rows)


web.serve(8000, work)
