"""Counts so many words without end, and prints how many documents it has done, every second."""
import time

began = last = time.monotonic()
done = 0
while True:
    words = {}
    for i in range(2000):
        words[i % 97] = words.get(i % 97, 0) + 1
    done += 1
    now = time.monotonic()
    if now - last >= 1:
        print(f"{done} documents in {now - began:.1f} s", flush=True)
        last = now
