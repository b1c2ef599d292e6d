"""Takes uploads: reads as many bytes as the head of a request says, and answers."""
import socket
import threading


def serve(c):
    f = c.makefile("rb")
    try:
        while f.readline():
            length = 0
            while (line := f.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            while length > 0 and (got := len(f.read(min(length, 65536)))):
                length -= got
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nstored\n")
    except OSError:
        pass
    c.close()


listener = socket.create_server(("", 8000), backlog=1024)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
