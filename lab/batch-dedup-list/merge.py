"""merge.py list|set: merges the addresses of two mailings and leaves out who is there twice, again and again; says how long it took."""
import random
import sys
import time


def read(name):
    with open(name) as f:
        return f.read().split()


def merge(addresses, seen):
    add = seen.add if isinstance(seen, set) else seen.append
    merged = []
    for address in addresses:
        if address not in seen:
            add(address)
            merged.append(address)
    return merged


with open("mailings.txt", "w") as f:
    random.seed(7)
    for _ in range(24000):
        f.write("customer%05d@example.org\n" % random.randrange(16000))
while True:
    began = time.monotonic()
    merged = merge(read("mailings.txt"), set() if sys.argv[1] == "set" else [])
    with open("merged.txt", "w") as f:
        f.write("\n".join(merged))
    print(f"merged to {len(merged)} addresses in {(time.monotonic() - began) * 1000:.0f} ms", flush=True)
