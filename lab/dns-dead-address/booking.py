"""Books a ticket for each request, over a connection of its own: booking.py HOST PORT"""
import socket
import sys

import web

QUESTION = b"GET /book HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % sys.argv[1].encode()


def work():
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1) as c:
        c.sendall(QUESTION)
        return c.recv(4096)[-3:]


web.serve(8000, work)
