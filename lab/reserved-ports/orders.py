"""Asks the stock service for each order, over a new connection, which the stock service closes."""
import socket
import time

import web


def work():
    try:
        with socket.create_connection(("10.77.0.1", 8100), timeout=5) as c:
            c.sendall(b"GET / HTTP/1.1\r\nHost: stock\r\n\r\n")
            while c.recv(4096):
                pass
    except OSError:
        time.sleep(0.1)  # who fails does not hurry
        raise
    return b"ordered\n"


web.serve(8000, work)
