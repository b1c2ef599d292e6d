"""Shows a price from the replica, or from the database, which takes 40 ms, when the replica says that it is not in sync."""
import random
import socket
import threading
import time

import web

kept = threading.local()


def price():
    if not hasattr(kept, "c"):
        kept.c = socket.create_connection(("127.0.0.1", 6380))
        kept.c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kept.file = kept.c.makefile("rb")
    kept.c.sendall(b"GETRANGE price:%05d 0 9\r\n" % random.randrange(20000))
    line = kept.file.readline()
    if line[:1] == b"$":
        kept.file.readline()
        return b"a price from the replica\n"
    time.sleep(0.04)
    return b"a price from the database\n"


web.serve(8000, price)
