"""Pages that read ten prices each, of one hash in redis, with one pipeline."""
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
    c.sendall(b"".join(b"HGET prices goods-%d\r\n" % random.randrange(1, 30001) for _ in range(10)))
    lines = [file.readline() for _ in range(20)]
    return b"".join(lines[1::2])


web.serve(8000, page)
