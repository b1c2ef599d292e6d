"""Asks the warehouse for the stock of an article for each page, and does without it where that takes too long."""
import socket

import web


def work():
    try:
        with socket.create_connection(("10.77.0.1", 9000), timeout=0.5) as c:
            c.sendall(b"GET /stock HTTP/1.1\r\nHost: warehouse\r\nConnection: close\r\n\r\n")
            return b"in stock: " + c.recv(4096)[-3:]
    except socket.timeout:
        return b"stock unknown\n"


web.serve(8000, work)
