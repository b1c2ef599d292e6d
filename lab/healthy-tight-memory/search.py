"""Keeps an index of 112 MiB in memory and looks something up in it for every request."""
import hashlib
import random

import web

index = bytearray(112 << 20)
for at in range(0, len(index), 1 << 20):
    index[at : at + (1 << 20)] = random.randbytes(1 << 20)


def work():
    at = random.randrange(len(index) - 4096)
    return hashlib.sha256(index[at : at + 4096]).hexdigest().encode() + b"\n"


web.serve(8000, work)
