"""Takes webhooks: hooks.py close|read, whether a connection is closed with the body unread. Answers 202 and makes the rest its own business."""
import socket
import sys
import threading

read = sys.argv[1] == "read"


def serve(c):
    try:
        f = c.makefile("rb")
        length = 0
        while (line := f.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        while read and length > 0 and (got := len(f.read(min(length, 65536)))):
            length -= got
        c.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 6\r\nConnection: close\r\n\r\nnoted\n")
        f.close()
    except OSError:
        pass
    c.close()


listener = socket.create_server(("", 8000), backlog=1024)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
