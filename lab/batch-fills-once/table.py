"""table.py: fills a table of 512 MB, 4 MB at a time, and computes a checksum over each part many times; says every second how much there is."""
import hashlib
import mmap
import time

part = 4 << 20
size = 512 << 20
table = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
last = time.monotonic()
at = 0
while True:
    if at < size:
        table[at : at + part] = b"x" * part
        at += part
    for _ in range(20):
        hashlib.md5(memoryview(table)[at - part : at]).digest()
    if time.monotonic() - last >= 1:
        print(f"{at >> 20} MB", flush=True)
        last = time.monotonic()
