"""Reads one of three thousand meters for each request, each at an address of its own."""
import random
import socket

import web


def work():
    n = random.randrange(3000)
    c = socket.create_connection(("10.78.%d.%d" % (n // 250, n % 250 + 1), 8100), timeout=2)
    c.sendall(b"GET / HTTP/1.1\r\nHost: meter\r\n\r\n")
    c.recv(4096)
    c.close()
    return b"a reading\n"


web.serve(8000, work)
