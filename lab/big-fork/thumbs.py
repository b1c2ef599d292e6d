"""Holds so many megabytes and starts a program for every request, by fork() and exec()."""
import os
import sys

import web

cache = bytearray(int(sys.argv[1]) << 20)
for i in range(0, len(cache), 4096):
    cache[i] = 1


def work():
    pid = os.fork()
    if pid == 0:
        os.execv("/bin/true", ["true"])
    os.waitpid(pid, 0)
    return b"ok\n"


web.serve(8000, work)
