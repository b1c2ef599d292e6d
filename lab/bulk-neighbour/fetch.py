"""Fetches from port 8730 on so many connections, without end."""
import socket
import sys
import threading
import time


def fetch():
    c = socket.create_connection(("10.77.0.2", 8730))
    while c.recv(1 << 16):
        pass


for _ in range(int(sys.argv[1])):
    threading.Thread(target=fetch, daemon=True).start()
time.sleep(1000)
