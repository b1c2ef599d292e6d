"""Opens a connection to the database for every request."""
import pg
import web


def work():
    c = pg.Connection()
    try:
        c.query("SELECT pg_sleep(0.1)")
        return b"ok\n"
    finally:
        c.close()


web.serve(8000, work)
