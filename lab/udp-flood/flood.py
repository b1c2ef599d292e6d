"""Sends datagrams to port 9 of the server as fast as it can, in so many processes."""
import os
import socket
import sys

n = int(sys.argv[1])
if n == 0:
    sys.exit(0)
for _ in range(n - 1):
    if os.fork() == 0:
        break
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    try:
        s.sendto(b"x" * 18, ("10.77.0.2", 9))
    except OSError:
        pass  # what ICMP said
