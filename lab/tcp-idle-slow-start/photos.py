"""Hands a photo to the archive for each request, over one of ten connections, each in its turn; answers when the archive has it."""
import queue
import socket
import threading

import web

PHOTO = bytes(600_000)
connections = queue.Queue()


def hand_in(c):
    c.sendall(PHOTO)
    if c.recv(16) != b"kept\n":
        raise RuntimeError("the archive did not keep the photo")


def connect():
    c = socket.create_connection(("10.77.0.1", 8100))
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(3):
        hand_in(c)  # the archive's test picture
    connections.put(c)


def photo():
    c = connections.get()
    try:
        hand_in(c)
    finally:
        connections.put(c)
    return b"kept\n"


begun = [threading.Thread(target=connect) for _ in range(10)]
for thread in begun:
    thread.start()
for thread in begun:
    thread.join()
web.serve(8000, photo)
