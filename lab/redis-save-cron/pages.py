"""Pages that read one key of redis each."""
import random
import socket
import threading

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


web.serve(8000, page)
