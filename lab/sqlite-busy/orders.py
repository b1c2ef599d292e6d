# A small HTTP server with a thread for each connection, which writes an order for each request.
import socket
import sqlite3
import sys
import threading
import time

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
inside, path = sys.argv[1] == "yes", sys.argv[2]


def opened():
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    db.execute("PRAGMA synchronous=OFF")
    return db


def order(db):
    if not inside:
        time.sleep(0.02)
    db.execute("BEGIN IMMEDIATE")
    if inside:
        time.sleep(0.02)
    db.execute("INSERT INTO orders (at) VALUES (?)", (time.time(),))
    db.execute("COMMIT")


def serve(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    db = opened()
    try:
        while c.recv(4096):
            order(db)
            c.sendall(REPLY)
    except OSError:
        pass
    c.close()


opened().execute("CREATE TABLE orders (at REAL)")
listener = socket.create_server(("", 8000), backlog=1024)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
