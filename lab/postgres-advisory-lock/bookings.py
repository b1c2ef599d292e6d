"""Books under an advisory lock, whose number is given, or that of the event (event); asks a partner meanwhile."""
import random
import socket
import sys
import threading

import pg
import web

kept = threading.local()


def ask():
    if not hasattr(kept, "partner"):
        kept.partner = socket.create_connection(("127.0.0.1", 8100))
        kept.partner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    kept.partner.sendall(b"GET /book HTTP/1.1\r\nHost: partner\r\n\r\n")
    kept.partner.recv(4096)


def work():
    key = random.randrange(1_000_000) if sys.argv[1] == "event" else int(sys.argv[1])
    pg.query("BEGIN")
    pg.query(f"SELECT pg_advisory_xact_lock({key})")
    ask()
    pg.query("COMMIT")
    return b"booked\n"


web.serve(8000, work)
