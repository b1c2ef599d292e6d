"""A small HTTP server with a pool of threads that starts with the first request,
as Java's do. It writes header and body of each reply apart; its third argument,
"nodelay", switches Nagle's algorithm off."""
import queue
import select
import socket
import sys
import threading

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain\r\n\r\n"
BODY = b"Hello World!\n"

port, size, nodelay = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "nodelay"
work, open_now = queue.SimpleQueue(), {}
listener = socket.create_server(("0.0.0.0", port), backlog=1024)
ready = select.epoll()
ready.register(listener, select.EPOLLIN)


def serve():
    while True:
        conn = work.get()
        try:
            if conn.recv(4096):
                conn.send(HEAD)
                conn.send(BODY)
                ready.modify(conn, select.EPOLLIN | select.EPOLLONESHOT)
                continue
        except OSError:
            pass
        del open_now[conn.fileno()]
        conn.close()


while True:
    for number, _ in ready.poll():
        if number != listener.fileno():
            work.put(open_now[number])
            continue
        conn, _ = listener.accept()
        if nodelay:
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while threading.active_count() <= size:
            threading.Thread(target=serve, daemon=True).start()
        open_now[conn.fileno()] = conn
        ready.register(conn, select.EPOLLIN | select.EPOLLONESHOT)
