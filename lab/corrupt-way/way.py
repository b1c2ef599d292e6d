# Hands every frame from one device to the other, 2 ms later, and spoils a share of
# the TCP packets: their checksum, which the last device was to finish, stays unfinished.
import collections
import random
import select
import socket
import sys
import time

SOL_PACKET, VNET_HDR, IGNORE_OUTGOING, ALL = 263, 15, 23, 3
SNDBUFFORCE, RCVBUFFORCE = 32, 33
spoiled = float(sys.argv[1])


def device(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.setsockopt(SOL_PACKET, VNET_HDR, 1)
    s.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    s.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 32 << 20)
    s.setsockopt(socket.SOL_SOCKET, SNDBUFFORCE, 32 << 20)
    s.bind((name, ALL))
    s.setblocking(False)
    return s


def passed(frame):
    # virtio_net_hdr: flags (1: checksum to be finished), gso_type (0: one segment)
    if frame[0] & 1 and frame[1] == 0 and len(frame) > 100 and random.random() < spoiled:
        return bytes(10) + frame[10:]
    return frame


client, server = device("client"), device("server")
beyond = {client: server, server: client}
line = collections.deque()
while True:
    wait = max(0, line[0][0] - time.monotonic()) if line else None
    for s in select.select([client, server], [], [], wait)[0]:
        due = time.monotonic() + 0.002
        try:
            while True:
                line.append((due, beyond[s], passed(s.recv(1 << 17))))
        except BlockingIOError:
            pass
    while line and line[0][0] <= time.monotonic():
        _, out, frame = line.popleft()
        try:
            out.send(frame)
        except OSError:
            pass  # no room, as on any way
