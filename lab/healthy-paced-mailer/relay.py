"""A mail relay, as far as a mailer needs one: takes every message, after 15 ms."""
import socket
import threading
import time


def talk(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    file = c.makefile("rb")
    c.sendall(b"220 relay ESMTP\r\n")
    text = False
    for line in file:
        if text:
            if line == b".\r\n":
                text = False
                time.sleep(0.015)
                c.sendall(b"250 queued\r\n")
            continue
        word = line[:4].upper()
        if word == b"DATA":
            text = True
            c.sendall(b"354 go on\r\n")
        elif word == b"QUIT":
            c.sendall(b"221 bye\r\n")
            break
        else:
            c.sendall(b"250 well\r\n")
    c.close()


listener = socket.create_server(("10.77.0.1", 25), backlog=64)
while True:
    threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()
