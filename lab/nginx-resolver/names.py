"""names.py MS: a name server for which every name stands on the asker's own machine, which it says after MS milliseconds and for now only (TTL 0)."""
import heapq
import select
import socket
import sys
import time

delay = float(sys.argv[1]) / 1000
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.77.0.1", 53))
due = []
while True:
    wait = max(0, due[0][0] - time.monotonic()) if due else None
    if select.select([s], [], [], wait)[0]:
        query, who = s.recvfrom(512)
        heapq.heappush(due, (time.monotonic() + delay, query, who))
    while due and due[0][0] <= time.monotonic():
        _, query, who = heapq.heappop(due)
        head = query[:2] + b"\x81\x80" + query[4:6] * 2 + bytes(4)
        s.sendto(head + query[12:] + b"\xc0\x0c\x00\x01\x00\x01" + bytes(4) + b"\x00\x04\x7f\x00\x00\x01", who)
