"""Asks the backend for every request, and again when it does not answer soon."""
import socket
import sys

import web

attempts, patience = int(sys.argv[1]), float(sys.argv[2])


def ask():
    with socket.create_connection(("127.0.0.1", 8100), timeout=patience) as c:
        c.sendall(b"GET / HTTP/1.1\r\nHost: backend\r\n\r\n")
        c.recv(4096)


def work():
    for n in range(attempts):
        try:
            ask()
            return b"ok\n"
        except TimeoutError:
            pass
    raise RuntimeError("the backend does not answer")


web.serve(8000, work)
