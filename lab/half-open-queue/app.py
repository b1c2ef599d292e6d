"""app.py BACKLOG: accepts whoever comes, answers one request, closes."""
import socket
import sys
import threading


def answer(c):
    try:
        c.recv(4096)
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")
    except OSError:
        pass
    c.close()


listener = socket.create_server(("", 8000), backlog=int(sys.argv[1]))
while True:
    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
