"""search.py SEGMENTS: maps SEGMENTS pieces of an index for good, and forty more for each request while it lasts."""
import ctypes
import mmap
import os
import socket
import sys
import threading
import time

import web

PAGE = 4096
file = os.open("index.bin", os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 1 << 26)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
FAILED = ctypes.c_void_p(-1).value


def piece(n):
    address = libc.mmap(None, PAGE, mmap.PROT_READ, mmap.MAP_SHARED, file, n % 4096 * 3 * PAGE)
    if address == FAILED:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return address


def work():
    pieces = []
    try:
        for n in range(40):
            pieces.append(piece(n))
        time.sleep(0.02)
        return b"found %d\n" % sum(ctypes.string_at(p, 1)[0] for p in pieces)
    finally:
        for p in pieces:
            libc.munmap(p, PAGE)


def take(listener):
    while True:
        web.answer(listener.accept()[0], work)


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("", 8000))
threads = [threading.Thread(target=take, args=(listener,)) for _ in range(64)]
segments = [piece(n) for n in range(int(sys.argv[1]))]
listener.listen(1024)
for t in threads:
    t.start()
threading.Event().wait()
