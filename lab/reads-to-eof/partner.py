"""A partner that says at once what is asked for, and keeps the connection for another second, unless it is told to close."""
import socket
import threading

BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12 euro\n"


def answer(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    c.settimeout(1)
    with c:
        try:
            while request := c.recv(4096):
                c.sendall(BODY)
                if b"Connection: close" in request:
                    break
        except TimeoutError:
            pass


listener = socket.create_server(("127.0.0.1", 8100), backlog=1024)
while True:
    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
