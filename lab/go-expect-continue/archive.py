"""The archive: takes a body of the length that the head says, and never says "100 Continue"."""
import socket
import threading

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nstored\n"


def answer(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with c, c.makefile("rb") as file:
        while file.readline():
            length = 0
            while (line := file.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            file.read(length)
            c.sendall(REPLY)


listener = socket.create_server(("127.0.0.1", 8100), backlog=1024)
while True:
    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
