"""Copies as a backup does: writes a block, has the disk confirm it, begins again."""
import os
import sys

f = os.open(sys.argv[1], os.O_WRONLY)
block = os.urandom(1 << 20)
while True:
    for n in range(16):
        os.pwrite(f, block, n << 20)
        os.fsync(f)
