"""Asks a partner, whose name it looks up each time."""
import socket

import web


def work():
    family, kind, _, _, address = socket.getaddrinfo("partner.example.internal", 8100, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind) as c:
        c.connect(address)
        c.sendall(b"GET / HTTP/1.1\r\nHost: partner\r\n\r\n")
        c.recv(4096)
    return b"a price\n"


web.serve(8000, work)
