"""shop.py SECONDS: shows what is in stock, asked on one of sixteen connections, which are renewed when they are so old."""
import queue
import socket
import sys
import time

import web

age = float(sys.argv[1])
pool = queue.LifoQueue()


def connect():
    c = socket.create_connection(("10.77.0.1", 9000))
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return c, time.monotonic()


def work():
    c, since = pool.get()
    try:
        if time.monotonic() - since > age:
            c.close()
            c, since = connect()
        c.sendall(b"ask\n")
        return c.recv(100)
    finally:
        pool.put((c, since))


for _ in range(16):
    pool.put(connect())
web.serve(8000, work)
