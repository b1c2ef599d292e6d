"""A site of four threads; each page takes 30 ms, may be kept for ten minutes, and says that it varies by: app.py VARY."""
import socket
import sys
import threading
import time

PAGE = b"<h1>News</h1>\n"
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: public, max-age=600\r\nVary: %s\r\nConnection: close\r\n\r\n%s" % (len(PAGE), sys.argv[1].encode(), PAGE)
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
