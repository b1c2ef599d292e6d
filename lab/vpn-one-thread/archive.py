"""Gives out a document of 100 KB for each line that it is asked with."""
import os
import socket
import threading

DOCUMENT = os.urandom(75_000).hex().encode()[:100_000]


def serve(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while c.recv(4096):
        c.sendall(DOCUMENT)
    c.close()


listener = socket.create_server(("", 8100), backlog=128)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
