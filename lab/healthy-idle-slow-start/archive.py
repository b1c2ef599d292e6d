"""The archive: takes what comes on connections that stay, each with its length before it, and confirms it with a line."""
import socket
import threading


def take(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    f = c.makefile("rb", 262144)
    while head := f.read(8):
        f.read(int.from_bytes(head, "big"))
        c.sendall(b"kept\n")


listener = socket.create_server(("", 8100), backlog=64)
while True:
    threading.Thread(target=take, args=(listener.accept()[0],), daemon=True).start()
