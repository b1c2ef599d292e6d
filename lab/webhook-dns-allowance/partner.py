"""Takes webhooks, one a connection: partner.py PORT"""
import socket
import sys
import threading


def take(c):
    with c:
        c.recv(4096)
        c.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")


listener = socket.create_server(("", int(sys.argv[1])), backlog=512)
while True:
    threading.Thread(target=take, args=(listener.accept()[0],), daemon=True).start()
