"""Takes events that their sender sends twice or more, as it says it will; the database's unique key tells which is new."""
import random

import pg
import web


def work():
    event = random.randrange(400)
    try:
        pg.query(f"INSERT INTO events (id, what) VALUES ({event}, 'paid')")
    except RuntimeError as e:
        if "C23505" not in str(e):
            raise
        return b"known\n"
    return b"noted\n"


first = pg.Connection()
first.query("CREATE TABLE events (id int PRIMARY KEY, what text)")
first.close()
web.serve(8000, work)
