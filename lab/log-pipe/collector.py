"""Reads standard input, so many bytes a second."""
import os
import sys
import time

rate = int(sys.argv[1])
began, taken = time.monotonic(), 0
while True:
    data = os.read(0, 16384)
    if not data:
        break
    taken += len(data)
    ahead = began + taken / rate - time.monotonic()
    if ahead > 0:
        time.sleep(ahead)
