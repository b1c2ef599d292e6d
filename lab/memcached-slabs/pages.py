"""pages.py fill | serve

Old articles were cached in small pieces; the new site caches whole pages of 12 KB. What memcached lacks comes from the database.
"""
import random
import socket
import sys
import threading

import web

PAGES, SIZE, OLD = 1500, 12000, 40000
kept = threading.local()


def connection(name, port):
    if not hasattr(kept, name):
        c = socket.create_connection(("127.0.0.1", port))
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        setattr(kept, name, (c, c.makefile("rb")))
    return getattr(kept, name)


def store(key, size):
    c, file = connection("cache", 11211)
    c.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (key, size, b"p" * size))
    file.readline()


def has(key):
    c, file = connection("cache", 11211)
    c.sendall(b"get %s\r\n" % key)
    found = file.readline().startswith(b"VALUE")
    if found:
        file.read(SIZE + 2)
        file.readline()
    return found


def work():
    key = b"page:%d" % random.randrange(PAGES)
    if not has(key):
        c, file = connection("database", 8100)
        c.sendall(b"GET / HTTP/1.1\r\nHost: database\r\n\r\n")
        while file.readline() != b"\r\n":
            pass
        file.read(3)
        store(key, SIZE)
    return b"a page\n"


if sys.argv[1] == "fill":
    for i in range(OLD):
        store(b"piece:%d" % i, 1400)
else:
    web.serve(8000, work)
