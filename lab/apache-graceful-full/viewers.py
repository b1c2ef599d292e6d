"""viewers.py N: so many people, each of whom fetches a film of 10 MB, a MB a second, again and again."""
import socket
import sys
import threading
import time


def viewer(n):
    time.sleep(n * 0.3)
    while True:
        try:
            with socket.socket() as c:
                c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
                c.connect(("10.77.0.2", 80))
                c.sendall(b"GET /film.mp4 HTTP/1.1\r\nHost: site\r\n\r\n")
                while c.recv(50000):
                    time.sleep(0.05)
        except OSError:
            pass
        time.sleep(0.5)


for n in range(int(sys.argv[1])):
    threading.Thread(target=viewer, args=(n,)).start()
