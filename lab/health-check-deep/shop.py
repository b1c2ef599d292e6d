"""shop.py CHECK: a customer's orders, and at /health whether the query CHECK works."""
import random
import socket
import sys
import threading

import pg

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"


def answer(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while request := c.recv(4096):
            if request.startswith(b"GET /health "):
                pg.query(sys.argv[1])
                body = b"healthy\n"
            else:
                body = b"%d orders\n" % len(pg.query(f"SELECT id, text FROM orders WHERE customer = {random.randrange(60000)}"))
            c.sendall(REPLY % (len(body), body))
    except OSError:
        pass
    c.close()


listener = socket.create_server(("", 8000), backlog=1024)
while True:
    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
