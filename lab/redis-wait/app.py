"""Writes an order to redis, and waits until a replica has it, or for 300 ms."""
import itertools
import socket
import threading

import web

kept, number = threading.local(), itertools.count()


def work():
    if not hasattr(kept, "file"):
        kept.c = socket.create_connection(("127.0.0.1", 6379))
        kept.c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kept.file = kept.c.makefile("rb")
    kept.c.sendall(b"SET order:%d taken\r\nWAIT 1 300\r\n" % (next(number) % 10000))
    kept.file.readline()
    return b"taken, and kept in %d more places\n" % int(kept.file.readline()[1:])


web.serve(8000, work)
