# Asks the partner for each request, on a new connection.
import socket

import web


def book():
    with socket.create_connection(("10.77.0.1", 8100)) as c:
        c.sendall(b"GET /book HTTP/1.1\r\nHost: partner\r\n\r\n")
        return c.recv(4096)[-4:]


web.serve(8000, book)
