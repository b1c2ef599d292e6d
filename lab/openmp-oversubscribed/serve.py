"""serve.py WORKERS: so many processes, each of which takes a connection, scores, answers and closes it."""
import ctypes
import os
import socket
import sys

library = ctypes.CDLL("./score.so")
library.score.restype = ctypes.c_double
listener = socket.create_server(("", 8000), backlog=1024)
for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
while True:
    c = listener.accept()[0]
    try:
        if c.recv(4096):
            body = b"%.3f\n" % library.score(100)
            c.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    except OSError:
        pass
    c.close()
