"""Pages that read a key of redis each, one in twenty of which has a job done later; and the consumers who do it: shop.py serve|consume."""
import random
import socket
import sys
import threading

import web

kept = threading.local()


def redis(*words):
    if not hasattr(kept, "file"):
        c = socket.create_connection(("127.0.0.1", 6379))
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kept.socket, kept.file = c, c.makefile("rb")
    kept.socket.sendall(b" ".join(words) + b"\r\n")
    line = kept.file.readline()
    if line[:1] == b"$" and line != b"$-1\r\n":
        return kept.file.readline()
    for _ in range(int(line[1:]) if line[:1] == b"*" else 0):
        kept.file.readline()
        kept.file.readline()
    return line


def page():
    if random.random() < 0.05:
        redis(b"LPUSH", b"jobs", b"mail")
    return redis(b"GET", b"page")


def consume():
    while True:
        redis(b"BRPOP", b"jobs", b"0")


if sys.argv[1] == "serve":
    redis(b"SET", b"page", b"news")
    web.serve(8000, page)
for _ in range(80):
    threading.Thread(target=consume).start()
