"""Asks the database for 20 ms for each request, on a connection for this request alone."""
import pg
import web


def work():
    c = pg.Connection()
    try:
        return b"%d\n" % len(c.query("SELECT pg_sleep(0.02)"))
    finally:
        c.close()


web.serve(8000, work)
