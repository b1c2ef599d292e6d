"""Asks the stock service anew for each request."""
import socket

import web


def stock():
    with socket.create_connection(("10.77.0.1", 8100), 10) as c:
        c.sendall(b"GET / HTTP/1.1\r\nHost: stock\r\nConnection: close\r\n\r\n")
        while c.recv(4096):
            pass
    return b"three in stock\n"


web.serve(8000, stock)
