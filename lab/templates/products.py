"""products.py CACHE PRODUCTS SIZE fill ROUNDS | serve FAVOUR

Products of SIZE bytes from the cache (redis or memcached), or from the database and then into the cache.
FAVOUR: how many of a hundred requests ask for one of a hundred favourites. ROUNDS: how often fill writes all of them.
"""
import random
import socket
import sys
import threading

import web

CACHE, PRODUCTS, SIZE, what, how = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
kept = threading.local()


def connection(name, port):
    if not hasattr(kept, name):
        c = socket.create_connection(("127.0.0.1", port))
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        setattr(kept, name, (c, c.makefile("rb")))
    return getattr(kept, name)


class Redis:
    """A key that has no room is not kept: the reply is read, and nobody minds."""

    def store(key):
        c, file = connection("cache", 6379)
        c.sendall(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(key), key, SIZE, b"p" * SIZE))
        file.readline()

    def has(key):
        c, file = connection("cache", 6379)
        c.sendall(b"GET %s\r\n" % key)
        found = file.readline() != b"$-1\r\n"
        if found:
            file.read(SIZE + 2)
        return found


class Memcached:
    def store(key):
        c, file = connection("cache", 11211)
        c.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (key, SIZE, b"p" * SIZE))
        file.readline()

    def has(key):
        c, file = connection("cache", 11211)
        c.sendall(b"get %s\r\n" % key)
        found = file.readline().startswith(b"VALUE")
        if found:
            file.read(SIZE + 2)
            file.readline()
        return found


cache = {"redis": Redis, "memcached": Memcached}[CACHE]


def product():
    key = b"product:%d" % random.randrange(100 if random.randrange(100) < how else PRODUCTS)
    if cache.has(key):
        return b"cached\n"
    c, file = connection("database", 8100)
    c.sendall(b"GET / HTTP/1.1\r\nHost: database\r\n\r\n")
    while file.readline() != b"\r\n":
        pass
    file.read(3)
    cache.store(key)
    return b"asked\n"


if what == "fill":
    for i in range(PRODUCTS * how):
        cache.store(b"product:%d" % (i % PRODUCTS))
else:
    web.serve(8000, product)
