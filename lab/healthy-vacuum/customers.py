"""Shows one customer for each request."""
import random

import pg
import web

first = pg.Connection()
first.query("CREATE TABLE customers AS SELECT n AS id, 'Customer ' || n AS name FROM generate_series(1, 50000) n")
first.query("ALTER TABLE customers ADD PRIMARY KEY (id)")
first.query("CREATE TABLE visits WITH (autovacuum_enabled = off) AS SELECT n AS id, 0 AS times FROM generate_series(1, 20000) n")
first.query("ALTER TABLE visits ADD PRIMARY KEY (id)")
first.query("VACUUM ANALYZE")
first.close()


def work():
    return pg.query(f"SELECT name FROM customers WHERE id = {random.randrange(1, 50000)}")[0][6:] + b"\n"


web.serve(8000, work)
