# Works for a moment and counts a visit in redis, over a connection that each thread keeps (serve); or
# holds sixty connections to it and does nothing with them (leak).
import socket
import sys
import threading
import time

import web

kept = threading.local()


def connect():
    c = socket.create_connection(("127.0.0.1", 6379))
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return c


def visit():
    time.sleep(0.05)
    if getattr(kept, "redis", None) is None:
        kept.redis = connect()
    try:
        kept.redis.sendall(b"INCR visits\r\n")
        reply = kept.redis.recv(4096)
    except OSError:
        reply = b"-ERR connection lost\r\n"
    if not reply.startswith(b":"):
        kept.redis = None
        raise RuntimeError(f"redis: {reply!r}")
    return b"ok\n"


if sys.argv[1] == "serve":
    web.serve(8000, visit)
else:
    held = [connect() for _ in range(60)]
    for c in held:
        c.sendall(b"PING\r\n")
        c.recv(16)
    web.serve(8001, lambda: b"%d\n" % len(held))
