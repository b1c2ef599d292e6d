"""A site of four threads; each page takes 30 ms and sets a cookie: app.py COOKIE (yes, no)."""
import socket
import sys
import threading
import time

COOKIE = b"Set-Cookie: visit=1; Path=/\r\n" if sys.argv[1] == "yes" else b""
PAGE = b"<h1>News</h1>\n"
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: public, max-age=60\r\nConnection: close\r\n%s\r\n%s" % (len(PAGE), COOKIE, PAGE)
listener = socket.create_server(("127.0.0.1", 8001), backlog=1024)


def take():
    while True:
        c = listener.accept()[0]
        try:
            c.recv(4096)
            time.sleep(0.03)
            c.sendall(REPLY)
        except OSError:
            pass
        c.close()


for _ in range(4):
    threading.Thread(target=take).start()
