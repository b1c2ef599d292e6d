"""lines.py LATE: the way between two sites, which is a bundle of two lines. Frames go over them in turn; one line takes 2 ms, the other LATE ms. What comes back takes 2 ms."""
import heapq
import select
import socket
import sys
import time

SOL_PACKET, VNET_HDR, IGNORE_OUTGOING, ALL = 263, 15, 23, 3
SNDBUFFORCE, RCVBUFFORCE = 32, 33
lines = 0.002, float(sys.argv[1]) / 1000


def device(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.setsockopt(SOL_PACKET, VNET_HDR, 1)
    s.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    s.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 32 << 20)
    s.setsockopt(socket.SOL_SOCKET, SNDBUFFORCE, 32 << 20)
    s.bind((name, ALL))
    s.setblocking(False)
    return s


client, server = device("client"), device("server")
way = []
n = 0
while True:
    wait = max(0, way[0][0] - time.monotonic()) if way else None
    for s in select.select([client, server], [], [], wait)[0]:
        now = time.monotonic()
        try:
            while True:
                frame = s.recv(1 << 17)
                n += 1
                late = lines[n % 2] if s is server else lines[0]
                heapq.heappush(way, (now + late, n, client if s is server else server, frame))
        except BlockingIOError:
            pass
    while way and way[0][0] <= time.monotonic():
        _, _, out, frame = heapq.heappop(way)
        try:
            out.send(frame)
        except OSError:
            pass  # no room, as on any way
