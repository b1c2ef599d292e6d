# Sixteen threads, each of which serves one connection at a time and asks the
# partner for each request: at the first address, and after 250 ms at the second.
import socket
import sys
import threading

ADDRESSES = [sys.argv[1], "10.77.0.1"]


def ask():
    for address in ADDRESSES:
        try:
            with socket.create_connection((address, 8100), timeout=0.25) as c:
                c.sendall(b"GET / HTTP/1.1\r\nHost: partner\r\n\r\n")
                return c.recv(4096)[-4:]
        except OSError:
            pass
    raise OSError("no partner answers")


def take(listener):
    while True:
        c = listener.accept()[0]
        with c:
            try:
                if c.recv(4096):
                    body = ask()
                    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
            except OSError:
                pass


listener = socket.create_server(("", 8000), backlog=1024)
for _ in range(16):
    threading.Thread(target=take, args=(listener,)).start()
