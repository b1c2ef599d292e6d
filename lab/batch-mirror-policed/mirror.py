"""A mirror: sends bytes without end to whoever connects to port 8730."""
import socket
import threading

block = bytes(1 << 18)


def send(c):
    try:
        while True:
            c.sendall(block)
    except OSError:
        c.close()


listener = socket.create_server(("10.77.0.1", 8730))
while True:
    threading.Thread(target=send, args=(listener.accept()[0],), daemon=True).start()
