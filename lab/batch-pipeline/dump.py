"""Writes rows to standard output without end, and says on standard error how much, every second."""
import os
import random
import sys
import time

random.seed(1)
rows = b"".join(b"%d,%d,name-%d,%s\n" % (i, random.randrange(10**9), i % 977, b"abcdefgh"[i % 8:]) for i in range(20000))
began = last = time.monotonic()
done = 0
while True:
    for at in range(0, len(rows), 65536):
        done += os.write(1, rows[at:at + 65536])
        now = time.monotonic()
        if now - last >= 1:
            print(f"{done / 1e6:.1f} MB in {now - began:.1f} s", file=sys.stderr, flush=True)
            last = now
