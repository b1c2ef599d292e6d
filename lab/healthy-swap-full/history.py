"""Keeps the history of a year in memory, 136 MB, of which nobody ever asks for more than the last days."""
import mmap
import os
import time

history = mmap.mmap(-1, 136 << 20)
for at in range(0, len(history), 4096):
    history[at:at + 16] = os.urandom(16)
print("filled", flush=True)
last = len(history) - (4 << 20)
while True:
    sum(history[at] for at in range(last, len(history), 4096))
    time.sleep(0.5)
