"""Adds up an export, from the beginning to the end: total.py FILE ADVICE, what the kernel is told of how it will be read (1: at random, 2: in order)."""
import os
import sys
import time

path, advice = sys.argv[1], int(sys.argv[2])
f = os.open(path, os.O_RDONLY)
os.fsync(f)
size = os.fstat(f).st_size
began, read = time.monotonic(), 0
while True:
    os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)  # each export is one that nobody has read yet
    os.posix_fadvise(f, 0, 0, advice)
    os.lseek(f, 0, os.SEEK_SET)
    total = 0
    while chunk := os.read(f, 8192):
        total += chunk[0]
        read += len(chunk)
        if time.monotonic() - began > 1:
            print(f"{read / (time.monotonic() - began) / 1e6:.0f} MB/s", flush=True)
            began, read = time.monotonic(), 0
