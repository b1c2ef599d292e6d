"""Products from the cache, or from the database and then into the cache. products.py fill N: writes all of them, N times."""
import random
import socket
import sys
import threading

import web

PRODUCTS, SIZE = 2000, 10000
kept = threading.local()


def connection(name, port):
    if not hasattr(kept, name):
        c = socket.create_connection(("127.0.0.1", port))
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        setattr(kept, name, (c, c.makefile("rb")))
    return getattr(kept, name)


def store(key):
    """Never mind when there is no room."""
    c, file = connection("cache", 6379)
    c.sendall(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(key), key, SIZE, b"p" * SIZE))
    file.readline()


def product():
    key = b"product:%d" % random.randrange(PRODUCTS)
    c, file = connection("cache", 6379)
    c.sendall(b"GET %s\r\n" % key)
    if file.readline() != b"$-1\r\n":
        file.read(SIZE + 2)
        return b"cached\n"
    c, file = connection("database", 8100)
    c.sendall(b"GET / HTTP/1.1\r\nHost: database\r\n\r\n")
    while file.readline() != b"\r\n":
        pass
    file.read(3)
    store(key)
    return b"asked\n"


if sys.argv[1] == "fill":
    for i in range(PRODUCTS * int(sys.argv[2])):
        store(b"product:%d" % (i % PRODUCTS))
else:
    web.serve(8000, product)
