# A long way that is not quite good: hands every frame from one device to the other, in
# both directions, so many milliseconds later; of a thousand large ones from the server seven,
# close together, are lost. The packets keep the kernel's note of
# their segments and checksums (PACKET_VNET_HDR), so that nothing else changes.
import collections
import select
import socket
import sys
import time

SOL_PACKET, VNET_HDR, IGNORE_OUTGOING, ALL = 263, 15, 23, 3
SNDBUFFORCE, RCVBUFFORCE = 32, 33
delay = float(sys.argv[1]) / 1000


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
beyond = {client: server, server: client}
line = collections.deque()
large = 0
while True:
    wait = max(0, line[0][0] - time.monotonic()) if line else None
    for s in select.select([client, server], [], [], wait)[0]:
        due = time.monotonic() + delay
        try:
            while True:
                frame = s.recv(1 << 17)
                if s is server and len(frame) > 1000:
                    large += 1
                    if large % 1000 in (0, 3, 5, 8, 12, 14, 19):
                        continue
                line.append((due, beyond[s], frame))
        except BlockingIOError:
            pass
    while line and line[0][0] <= time.monotonic():
        _, out, frame = line.popleft()
        try:
            out.send(frame)
        except OSError:
            pass  # no room, as on any way
