"""Fetches a document from the archive for each request, over a connection that the thread keeps, and shows how it begins."""
import socket
import sys
import threading

import web

kept = threading.local()


def work():
    if not hasattr(kept, "archive"):
        kept.archive = socket.create_connection((sys.argv[1], 8100))
        kept.archive.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    kept.archive.sendall(b"document\n")
    document = bytearray()
    while len(document) < 100_000:
        more = kept.archive.recv(100_000)
        if not more:
            raise OSError("the archive closed the connection")
        document += more
    return bytes(document[:64]) + b"\n"


web.serve(8000, work)
