# Fetches a page on each of some connections, a tenth of a second after the last
# one, and pauses after every 64 KB that it has read.
import socket
import sys
import threading
import time

host, port, path, connections, pause, seconds = sys.argv[1:]
pause, end = int(pause) / 1000, time.monotonic() + float(seconds)


def fetch():
    s = socket.create_connection((host, int(port)))
    s.settimeout(5)
    while time.monotonic() < end:
        s.sendall(b"GET %s HTTP/1.1\r\nHost: lab\r\n\r\n" % path.encode())
        got = s.recv(65536)
        head, _, body = got.partition(b"\r\n\r\n")
        left = int(head.lower().split(b"content-length:")[1].split()[0]) - len(body)
        while left > 0 and time.monotonic() < end:
            left -= len(s.recv(min(65536, left)))
            time.sleep(pause)
        time.sleep(0.1)
    s.close()


threads = [threading.Thread(target=fetch) for _ in range(int(connections))]
for t in threads:
    t.start()
for t in threads:
    t.join()
