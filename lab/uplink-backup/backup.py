"""Uploads a backup to the store on four connections, for ever: backup.py STORE BYTES, at most so many a second in all (0: as fast as it can)."""
import socket
import sys
import threading
import time

limit = int(sys.argv[2])
block = bytes(1 << 15)


def upload():
    c = socket.create_connection((sys.argv[1], 8730))
    while True:
        c.sendall(block)
        if limit:
            time.sleep(len(block) * 4 / limit)


for _ in range(4):
    threading.Thread(target=upload, daemon=True).start()
time.sleep(100000)
