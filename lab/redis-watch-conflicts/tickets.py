"""Sells tickets: tickets.py watch|decrement, how the number that is left in redis is changed."""
import socket
import sys
import threading
import time

import web

kept = threading.local()


def ask(*commands):
    """Sends commands at once and returns the first line of each reply, or the value."""
    if not hasattr(kept, "redis"):
        c = socket.create_connection(("127.0.0.1", 6379))
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kept.redis = c, c.makefile("rb")
    c, file = kept.redis
    c.sendall(b"".join(command + b"\r\n" for command in commands))
    replies = []
    for _ in commands:
        line = file.readline().strip()
        replies.append(file.readline().strip() if line[:1] == b"$" else line)
        if line == b"*1":
            file.readline()
    return replies


def price():
    time.sleep(0.005)  # the price is somebody else's to say


def watch():
    while True:
        left = int(ask(b"WATCH tickets", b"GET tickets")[1])
        price()
        if ask(b"MULTI", b"SET tickets %d" % (left - 1), b"EXEC")[2] == b"*1":
            return b"sold\n"


def decrement():
    price()
    ask(b"DECR tickets")
    return b"sold\n"


ask(b"SET tickets 10000000")
web.serve(8000, globals()[sys.argv[1]])
