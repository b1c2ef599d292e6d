"""Page processes that ask memcached for 60 keys, and think 15 ms: pages.py HOST PORT COUNT"""
import socket
import sys
import threading
import time

KEYS = ["fragment:%d" % i for i in range(60)]
GET = ("get " + " ".join(KEYS) + "\r\n").encode()


def connect():
    c = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return c


def pages():
    c = connect()
    while True:
        c.sendall(GET)
        tail = b""
        while not tail.endswith(b"END\r\n"):
            tail = c.recv(262144)[-5:]
        time.sleep(0.015)


fill = connect()
for key in KEYS:
    fill.sendall(("set %s 0 0 1500\r\n" % key).encode() + b"x" * 1500 + b"\r\n")
    fill.recv(100)
for _ in range(int(sys.argv[3])):
    threading.Thread(target=pages).start()
