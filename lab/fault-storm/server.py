# A small HTTP server with a thread for each connection; each request fills 40 MB.
import ctypes
import mmap
import socket
import sys
import threading

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
SIZE, keeps = 40 << 20, sys.argv[1] == "yes"


def fill(buffer):
    # a byte in every page, as a table that is cleared
    buffer[::4096] = b"x" * (len(buffer) // 4096)


def buffer():
    m = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m.madvise(mmap.MADV_NOHUGEPAGE)
    return m


def serve(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    kept = buffer()
    try:
        while c.recv(4096):
            b = kept if keeps else buffer()
            fill(b)
            if not keeps:
                b.close()
            c.sendall(REPLY)
    except OSError:
        pass
    c.close()


listener = socket.create_server(("", 8000), backlog=1024)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
