"""One of several servers on port 8000, each with a listening socket of its own; or one that hangs."""
import socket
import sys
import threading

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"

listener = socket.create_server(("", 8000), backlog=1024, reuse_port=True)
if sys.argv[1] == "yes":
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
while True:
    c = listener.accept()[0]
    try:
        if c.recv(4096):
            c.sendall(REPLY)
    except OSError:
        pass
    c.close()
