# A small HTTP server with a thread for each connection, and one that computes a report.
import socket
import sys
import threading

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


def report():
    total = 0
    while True:
        for i in range(1000):
            total = (total * 31 + i) % 1000003


def serve(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while c.recv(4096):
            c.sendall(REPLY)
    except OSError:
        pass
    c.close()


if sys.argv[1] == "yes":
    threading.Thread(target=report, daemon=True).start()
listener = socket.create_server(("", 8000), backlog=1024)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
