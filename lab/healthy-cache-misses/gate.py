"""Lets a visitor in whose address redis has no entry for."""
import random
import socket
import threading

import web

kept = threading.local()


def ask(command):
    if not hasattr(kept, "c"):
        kept.c = socket.create_connection(("127.0.0.1", 6379))
        kept.c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kept.file = kept.c.makefile("rb")
    kept.c.sendall(command + b"\r\n")
    line = kept.file.readline()
    if line[:1] == b"$" and line != b"$-1\r\n":
        kept.file.readline()
    return line


def visit():
    address = b"198.51.%d.%d" % (random.randrange(256), random.randrange(256))
    return b"welcome\n" if ask(b"GET blocked:" + address) == b"$-1\r\n" else b"go away\n"


for n in range(64):
    ask(b"SET blocked:198.51.7.%d since-tuesday" % n)
web.serve(8000, visit)
