"""Appends rows to a file with fsync() after so many, and prints how many, every second."""
import os
import sys
import time

f = os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC)
each = int(sys.argv[2])
began = last = time.monotonic()
done = 0
while True:
    os.write(f, b"a row of some fifty bytes, as it is sent to a table\n")
    done += 1
    if done % 100000 == 0:
        os.ftruncate(f, 0)
        os.lseek(f, 0, 0)
    if done % each == 0:
        os.fsync(f)
    now = time.monotonic()
    if now - last >= 1:
        print(f"{done} rows in {now - began:.1f} s", flush=True)
        last = now
