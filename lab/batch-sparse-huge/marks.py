"""marks.py ADVICE: marks 4,000 places of a table of 512 MB, then begins with a new table; says every second how many tables."""
import mmap
import random
import sys
import time

advice = int(sys.argv[1])  # of madvise(2): 14 for huge pages, 15 for none
size = 512 << 20
began = last = time.monotonic()
done = 0
random.seed(1)
while True:
    table = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    table.madvise(advice)
    for _ in range(4000):
        table[random.randrange(size)] = 1
    table.close()
    done += 1
    now = time.monotonic()
    if now - last >= 1:
        print(f"{done} tables in {now - began:.1f} s", flush=True)
        last = now
