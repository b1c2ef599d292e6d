"""Notes an order for each request."""
import pg
import web


def order():
    pg.query("INSERT INTO orders (at) VALUES (now())")
    return b"noted\n"


web.serve(8000, order)
