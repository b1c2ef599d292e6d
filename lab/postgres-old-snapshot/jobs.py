"""A queue of jobs in a table: jobs.py morning [alone] makes it, and works off what the morning brought;
jobs.py serve adds a job for every request and takes the oldest one out."""
import sys
import time

import pg
import web

TAKE = "DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"


def morning(alone):
    c = pg.Connection()
    while not alone and not c.query("SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'"):
        time.sleep(0.05)
    c.query("CREATE TABLE jobs (id bigserial PRIMARY KEY, body text)")
    c.query("INSERT INTO jobs (body) SELECT 'a mail to send' FROM generate_series(1, 60000)")
    c.query("DELETE FROM jobs")
    c.close()


def work():
    pg.query("INSERT INTO jobs (body) VALUES ('a mail to send')")
    pg.query(TAKE)
    return b"done\n"


if sys.argv[1] == "morning":
    morning(sys.argv[2] != "")
else:
    web.serve(8000, work)
