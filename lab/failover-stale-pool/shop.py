"""Asks the stock service for each page, on connections of a pool: shop.py keep|close, what it does with one that does not answer within a second."""
import queue
import socket
import sys

import web

PARTNER, OLD = ("10.77.0.1", 8100), range(20001, 20008)
pool = queue.Queue()


def connect(port=0):
    c = socket.create_connection(PARTNER, timeout=1, source_address=("10.77.0.2", port))
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return c


def ask(c):
    c.sendall(b"GET /stock HTTP/1.1\r\nHost: stock\r\n\r\n")
    return c.recv(4096)


def page():
    while True:
        c = pool.get()
        try:
            c = c or connect()
            ask(c)
            pool.put(c)
            return b"in stock\n"
        except TimeoutError:
            if sys.argv[1] == "close":
                c.close()
                c = None
            pool.put(c)


for port in OLD:
    c = connect(port)
    ask(c)
    pool.put(c)
for _ in range(3):
    pool.put(None)
web.serve(8000, page)
