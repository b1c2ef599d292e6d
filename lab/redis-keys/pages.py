# Pages that read one key of redis each (serve), and a job that looks for old
# sessions: all of them in one command (keys), or a few at a time (scan).
import random
import socket
import sys
import threading
import time

import web

kept = threading.local()


def redis():
    if not hasattr(kept, "redis"):
        c = socket.create_connection(("127.0.0.1", 6379))
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kept.redis = c, c.makefile("rb")
    return kept.redis


def page():
    c, file = redis()
    c.sendall(b"GET visit:%d\r\n" % random.randrange(1, 1500001))
    file.readline()
    return file.readline()


def clean(how):
    c, file = redis()
    cursor = b"0"
    while True:
        if how == "keys":
            c.sendall(b"KEYS session:*\r\n")
            file.readline()
        else:
            c.sendall(b"SCAN %s MATCH session:* COUNT 500\r\n" % cursor)
            file.readline()
            file.readline()
            cursor = file.readline().strip()
            file.readline()
        time.sleep(0.005)


if sys.argv[1] == "serve":
    web.serve(8000, page)
else:
    clean(sys.argv[1])
