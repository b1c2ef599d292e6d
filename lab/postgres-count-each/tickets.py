"""Shows the ten newest tickets and how many there are; tickets.py exact|kept: whether they are counted for each page."""
import sys
import time

import pg
import web

first = pg.Connection()
first.query("CREATE TABLE tickets AS SELECT n AS id, n % 2 = 0 AS archived, 'Ticket ' || n AS title, repeat(md5(n::text), 4) AS text FROM generate_series(1, 400000) n")
first.query("ALTER TABLE tickets ADD PRIMARY KEY (id)")
first.query("CREATE INDEX ON tickets (archived, id)")
first.query("VACUUM ANALYZE tickets")
first.close()
exact = sys.argv[1] == "exact"
kept = [0, b""]


def total():
    if exact or time.monotonic() - kept[0] > 60:
        kept[:] = time.monotonic(), pg.query("SELECT count(*) FROM tickets WHERE NOT archived")[0][6:]
    return kept[1]


def work():
    rows = pg.query("SELECT id, title FROM tickets WHERE NOT archived ORDER BY id DESC LIMIT 10")
    return b"1 to %d of %s\n" % (len(rows), total())


web.serve(8000, work)
