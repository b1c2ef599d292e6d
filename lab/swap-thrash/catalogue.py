"""A catalogue in memory: each request reads sixty products somewhere in it."""
import random
import time

import web

PAGE, PAGES = 4096, 128 << 8
while len(open("/proc/swaps").readlines()) < 2:
    time.sleep(0.05)
catalogue = bytearray(PAGE * PAGES)
for i in range(PAGES):
    catalogue[i * PAGE : i * PAGE + 8] = i.to_bytes(8)


def work():
    return b"%d\n" % sum(catalogue[random.randrange(PAGES) * PAGE] for _ in range(60))


web.serve(8000, work)
