"""Gathers a day's records of 64 KB, 48 MB in all, to hand them on as one piece: gather.py bytes|bytearray, what they are gathered in."""
import os
import sys
import time

record = os.urandom(65536)
began, gathered = time.monotonic(), 0
while True:
    day = bytes() if sys.argv[1] == "bytes" else bytearray()
    for _ in range(768):
        day += record
        gathered += len(record)
        if time.monotonic() - began > 2:
            print(f"{gathered / (time.monotonic() - began) / 1e6:.1f} MB/s", flush=True)
            began, gathered = time.monotonic(), 0
