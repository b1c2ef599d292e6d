"""Counts up one row for every request."""
import pg
import web

first = pg.Connection()
first.query("CREATE TABLE stock (id int PRIMARY KEY, sold bigint)")
first.query("INSERT INTO stock VALUES (1, 0), (2, 0)")
first.close()


def work():
    pg.query("UPDATE stock SET sold = sold + 1 WHERE id = 1")
    return b"ok\n"


web.serve(8000, work)
