"""Numbers orders without gaps, and has each paid: orders.py number|payment, which says what comes first."""
import sys
import threading
import socket

import pg
import web

first = sys.argv[1]
kept = threading.local()
setup = pg.Connection()
setup.query("CREATE TABLE counter (name text PRIMARY KEY, n bigint)")
setup.query("INSERT INTO counter VALUES ('order', 0)")
setup.query("CREATE TABLE orders (n bigint PRIMARY KEY)")
setup.close()


def pay():
    if not hasattr(kept, "payment"):
        kept.payment = socket.create_connection(("127.0.0.1", 8100))
        kept.payment.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    kept.payment.sendall(b"GET / HTTP/1.1\r\nHost: payment\r\n\r\n")
    kept.payment.recv(4096)


def work():
    if first == "payment":
        pay()
    pg.query("BEGIN")
    pg.query("UPDATE counter SET n = n + 1 WHERE name = 'order'")
    if first == "number":
        pay()
    pg.query("INSERT INTO orders SELECT n FROM counter WHERE name = 'order'")
    pg.query("COMMIT")
    return b"paid\n"


web.serve(8000, work)
