"""A small HTTP server that writes header and body of each reply apart. Its
second argument, "nodelay", switches Nagle's algorithm off."""
import selectors
import socket
import sys

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain\r\n\r\n"
BODY = b"Hello World!\n"

listener = socket.create_server(("0.0.0.0", int(sys.argv[1])), backlog=1024)
ready = selectors.DefaultSelector()
ready.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in ready.select():
        if key.fileobj is listener:
            conn, _ = listener.accept()
            if sys.argv[2] == "nodelay":
                conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ready.register(conn, selectors.EVENT_READ)
            continue
        conn = key.fileobj
        try:
            request = conn.recv(4096)
            if request:
                conn.send(HEAD)
                conn.send(BODY)
                continue
        except OSError:
            pass
        ready.unregister(conn)
        conn.close()
