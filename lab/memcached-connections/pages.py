"""Answers from the cache; where that does not answer, makes the page anew, slowly."""
import socket
import threading
import time

import web

kept = threading.local()


def cached():
    try:
        if getattr(kept, "cache", None) is None:
            kept.cache = socket.create_connection(("127.0.0.1", 11211))
        kept.cache.sendall(b"get page\r\n")
        reply = kept.cache.recv(4096)
    except OSError:
        reply = b""
    if not reply.startswith((b"VALUE", b"END")):
        kept.cache = None
        return None
    if reply.startswith(b"END"):
        kept.cache.sendall(b"set page 0 0 3\r\nok\n\r\n")
        kept.cache.recv(4096)
    return b"ok\n"


def work():
    page = cached()
    if page is None:
        time.sleep(0.25)
    return page or b"ok\n"


web.serve(8000, work)
