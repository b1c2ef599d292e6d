"""names.py MS: a name server that knows nobody, and says so after MS milliseconds."""
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
        s.sendto(query[:2] + b"\x81\x83" + query[4:6] + bytes(6) + query[12:], who)
