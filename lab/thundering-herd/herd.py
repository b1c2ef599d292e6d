"""A small HTTP server of so many processes that wait for the same listening socket: all in
select(), or each in accept()."""
import os
import select
import socket
import sys

how, processes = sys.argv[1], int(sys.argv[2])
listener = socket.create_server(("", 8000), backlog=1024)
for _ in range(processes - 1):
    if os.fork() == 0:
        break
listener.setblocking(how == "accept")
while True:
    if how == "select":
        select.select([listener], [], [])
    try:
        c, _ = listener.accept()
    except BlockingIOError:
        continue
    try:
        c.setblocking(True)
        c.recv(4096)
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")
    except OSError:
        pass
    c.close()
