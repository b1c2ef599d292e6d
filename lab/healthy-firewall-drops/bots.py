"""Bots: try port 23 of the server four hundred times a second, and never wait for an answer."""
import socket
import time

tries = []
while True:
    for _ in range(20):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(("10.77.0.2", 23))
        tries.append(c)
    while len(tries) > 400:
        tries.pop(0).close()
    time.sleep(0.05)
