"""A broken tunnel: of every datagram that it sends to the server only the first fragment gets there."""
import os
import socket
import struct
import time

s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
source, target = socket.inet_aton("10.77.0.1"), socket.inet_aton("10.77.0.2")
data = struct.pack("!HHHH", 4500, 4500, 3000, 0) + os.urandom(1392)
n = 0
while True:
    for _ in range(4000 if n == 0 else 20):
        n += 1
        # MF: more fragments follow, which never do
        s.sendto(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(data), n % 65535 + 1, 0x2000, 64, 17, 0, source, target) + data, ("10.77.0.2", 0))
    time.sleep(0.05)
