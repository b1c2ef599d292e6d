"""Notes each visit in the database."""
import random

import pg
import web

first = pg.Connection()
first.query("CREATE TABLE visits (page int NOT NULL, at timestamptz NOT NULL DEFAULT now())")
first.close()


def work():
    pg.query("INSERT INTO visits (page) VALUES (%d)" % random.randrange(1000))
    return b"noted\n"


web.serve(8000, work)
