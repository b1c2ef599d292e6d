"""Looks up places of a file at random, and prints how many, every second."""
import mmap
import os
import random
import sys
import time

f = os.open(sys.argv[1], os.O_RDONLY)
os.fsync(f)  # dirty pages are not dropped
os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
m = mmap.mmap(f, 0, prot=mmap.PROT_READ)
m.madvise(mmap.MADV_RANDOM)
began = last = time.monotonic()
done, found = 0, 0
while True:
    for _ in range(100):
        found += m[random.randrange(len(m))]
    done += 100
    now = time.monotonic()
    if now - last >= 1:
        print(f"{done} places in {now - began:.1f} s", flush=True)
        last = now
