"""Asks the partner for every request, on a connection of its own."""
import socket

import web


def work():
    with socket.create_connection(("192.0.2.10", 8100), timeout=10) as c:
        c.sendall(b"GET / HTTP/1.1\r\nHost: partner\r\n\r\n")
        if not c.recv(4096):
            raise OSError("the partner closed the connection")
    return b"booked\n"


web.serve(8000, work)
