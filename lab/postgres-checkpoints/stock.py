"""Takes the thirty parts of a kit out of the stock of 60,000 parts, in one statement for each request."""
import random

import pg
import web

KITS, PARTS = 2000, 60000
setup = pg.Connection()
setup.query("CREATE TABLE stock (id int PRIMARY KEY, pieces int NOT NULL, description text NOT NULL) WITH (fillfactor = 70)")
setup.query(f"INSERT INTO stock SELECT i, 1000, repeat('a part of brass ', 40) FROM generate_series(1, {PARTS}) i")
setup.query("VACUUM ANALYZE stock")
setup.query("CHECKPOINT")
setup.close()


def book():
    parts = range(random.randrange(KITS) + 1, PARTS + 1, KITS)
    pg.query(f"UPDATE stock SET pieces = pieces - 1 WHERE id IN ({','.join(map(str, parts))})")
    return b"booked\n"


web.serve(8000, book)
