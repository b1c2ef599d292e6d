"""Counts a visit in redis for each request."""
import random
import socket
import threading

import web

kept = threading.local()


def page():
    if not hasattr(kept, "redis"):
        c = socket.create_connection(("127.0.0.1", 6379))
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kept.redis = c, c.makefile("rb")
    c, file = kept.redis
    c.sendall(b"INCR page:%d\r\n" % random.randrange(1, 1001))
    return file.readline()


web.serve(8000, page)
