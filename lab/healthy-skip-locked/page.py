"""A customer's orders; every tenth time a mail is ordered too."""
import random

import pg
import web


def work():
    rows = pg.query(f"SELECT id, text FROM orders WHERE customer = {random.randrange(6000)}")
    if random.random() < 0.1:
        pg.query("INSERT INTO jobs (address) VALUES ('somebody@example.com')")
    return b"%d orders\n" % len(rows)


web.serve(8000, work)
