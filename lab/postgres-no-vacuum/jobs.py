"""A table of open jobs: jobs.py weeks on|off makes it and has half a million jobs come and go, with vacuum or without; jobs.py serve shows how many are open."""
import sys

import pg
import web


def weeks(vacuum):
    c = pg.Connection()
    c.query("CREATE TABLE jobs (id bigserial PRIMARY KEY, state text, body text)")
    c.query("INSERT INTO jobs (state, body) SELECT 'open', repeat('a mail to send ', 15) FROM generate_series(1, 100)")
    for _ in range(5):
        c.query("INSERT INTO jobs (state, body) SELECT 'done', repeat('a mail to send ', 15) FROM generate_series(1, 100000)")
        c.query("DELETE FROM jobs WHERE state = 'done'")
        if vacuum == "on":
            c.query("VACUUM jobs")
    c.query("ANALYZE jobs")
    c.close()


def dashboard():
    return b"%d states\n" % len(pg.query("SELECT state, count(*) FROM jobs GROUP BY state"))


if sys.argv[1] == "weeks":
    weeks(sys.argv[2])
else:
    web.serve(8000, dashboard)
