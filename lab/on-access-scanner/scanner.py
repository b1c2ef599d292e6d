"""Allows each open of a file in a folder (scanner.py FOLDER) once it has looked for 100 signatures in it."""
import ctypes
import os
import random
import struct
import sys

CLASS_CONTENT, CLOEXEC, MARK_ADD, OPEN_PERM, ON_CHILD, AT_FDCWD, ALLOW = 4, 1, 1, 0x10000, 0x08000000, -100, 1
libc = ctypes.CDLL(None, use_errno=True)


def must(result):
    if result < 0:
        sys.exit(f"fanotify: {os.strerror(ctypes.get_errno())}")
    return result


agent = must(libc.fanotify_init(CLASS_CONTENT | CLOEXEC, os.O_RDONLY))
must(libc.fanotify_mark(agent, MARK_ADD, ctypes.c_uint64(OPEN_PERM | ON_CHILD), AT_FDCWD, sys.argv[1].encode()))
random.seed(1)
signatures = [b" " * 40 + random.randbytes(8) for _ in range(100)]
while True:
    for _, _, _, _, _, fd, _ in struct.iter_unpack("=IBBHQii", os.read(agent, 24)):
        content = os.pread(fd, 1 << 20, 0)
        any(s in content for s in signatures)
        os.write(agent, struct.pack("=iI", fd, ALLOW))
        os.close(fd)
