# A small HTTP server, one request at a time, which may forget to close.
import socket
import sys
import time

closes = sys.argv[1] == "yes"
listener = socket.create_server(("", 8000), backlog=1024)
forgotten = []
while True:
    try:
        c, _ = listener.accept()
        c.settimeout(5)
        c.recv(4096)
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")
    except OSError as e:
        print(e, file=sys.stderr, flush=True)
        time.sleep(0.1)
        continue
    if closes:
        c.close()
    else:
        forgotten.append(c)
