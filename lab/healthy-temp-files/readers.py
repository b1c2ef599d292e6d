# READERS who fetch the catalogue again and again, at BYTES a second each.
import socket
import sys
import threading
import time

readers, rate = int(sys.argv[1]), int(sys.argv[2])


def read():
    while True:
        try:
            with socket.socket() as c:
                c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
                c.connect(("10.77.0.2", 80))
                c.sendall(b"GET /catalogue HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
                while c.recv(rate // 10):
                    time.sleep(0.1)
        except OSError:
            time.sleep(0.1)


for _ in range(readers):
    threading.Thread(target=read).start()
