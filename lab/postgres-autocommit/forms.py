"""Inserts a hundred rows for every request, in one transaction or in a hundred."""
import sys

import pg
import web

together = sys.argv[1] == "yes"
first = pg.Connection()
first.query("CREATE TABLE lines (form int, line int, text text)")
first.close()


def work():
    if together:
        pg.query("BEGIN")
    for n in range(100):
        pg.query(f"INSERT INTO lines VALUES (1, {n}, 'a line of a form')")
    if together:
        pg.query("COMMIT")
    return b"ok\n"


web.serve(8000, work)
