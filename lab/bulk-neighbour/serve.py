"""Sends bytes without end to whoever connects to port 8730."""
import socket
import threading

block = bytes(1 << 16)


def send(c):
    try:
        while True:
            c.sendall(block)
    except OSError:
        c.close()


s = socket.create_server(("", 8730))
while True:
    threading.Thread(target=send, args=(s.accept()[0],), daemon=True).start()
