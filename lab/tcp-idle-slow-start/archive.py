"""The archive: takes photos of 600 KB each on connections that stay, and confirms each with a line."""
import socket
import threading

SIZE = 600_000


def take(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    missing = SIZE
    while part := c.recv(min(missing, 262144)):
        missing -= len(part)
        if missing == 0:
            c.sendall(b"kept\n")
            missing = SIZE


listener = socket.create_server(("", 8100), backlog=64)
while True:
    threading.Thread(target=take, args=(listener.accept()[0],), daemon=True).start()
