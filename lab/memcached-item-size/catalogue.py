"""Catalogues from the cache, or from the database and then into the cache; whether the cache took one is not looked at."""
import random
import socket
import threading

import web

CATALOGUE = b"an article, its price and its picture's address\n" * 23000  # 1.1 MB
kept = threading.local()


def connection(name, port):
    if not hasattr(kept, name):
        c = socket.create_connection(("127.0.0.1", port))
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        setattr(kept, name, (c, c.makefile("rb", 1 << 20)))
    return getattr(kept, name)


def work():
    key = b"catalogue:%d" % random.randrange(20)
    cache, file = connection("cache", 11211)
    cache.sendall(b"get %s\r\n" % key)
    head = file.readline()
    if head.startswith(b"VALUE"):
        file.read(int(head.split()[3]) + 2)
        file.readline()
        return b"shown\n"
    database, rows = connection("database", 8100)
    database.sendall(b"GET / HTTP/1.1\r\nHost: database\r\n\r\n")
    while rows.readline() != b"\r\n":
        pass
    rows.read(3)
    cache.sendall(b"set %s 0 0 %d\r\n" % (key, len(CATALOGUE)) + CATALOGUE + b"\r\n")
    file.readline()
    return b"shown\n"


web.serve(8000, work)
