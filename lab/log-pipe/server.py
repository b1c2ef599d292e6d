# A small HTTP server with a thread for each connection; it logs a kilobyte for each request.
import os
import socket
import threading

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


def serve(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while c.recv(4096):
            os.write(1, b"x" * 1023 + b"\n")
            c.sendall(REPLY)
    except OSError:
        pass
    c.close()


listener = socket.create_server(("", 8000), backlog=1024)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
