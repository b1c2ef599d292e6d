"""Counts twelve things for each request, in Redis, one after the other."""
import socket
import threading

import web

kept = threading.local()


def work():
    if not hasattr(kept, "redis"):
        kept.redis = socket.create_connection(("127.0.0.1", 6379))
        kept.redis.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for i in range(12):
        kept.redis.sendall(b"*2\r\n$4\r\nINCR\r\n$2\r\nc%c\r\n" % (97 + i))
        kept.redis.recv(64)
    return b"counted\n"


web.serve(8000, work)
