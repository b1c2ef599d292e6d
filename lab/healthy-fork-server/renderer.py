"""Renders pictures: forks for each connection, greets, and answers each line after some forty milliseconds of work."""
import os
import signal
import socket

signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def serve(c):
    f = c.makefile("rb")
    name = f.readline()
    c.sendall(b"hello " + name)
    while f.readline():
        sum(i * i for i in range(600_000))
        c.sendall(b"picture\n")


listener = socket.create_server(("", 8100), backlog=1024)
while True:
    c, _ = listener.accept()
    if os.fork() == 0:
        listener.close()
        serve(c)
        os._exit(0)
    c.close()
