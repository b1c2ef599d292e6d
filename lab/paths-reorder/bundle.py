# bundle.py TURNS: a bundle of two lines, of which one is longer. What the server sends goes over both in turns, packet
# by packet (yes), or each connection keeps to one (no); what the client sends goes over the first. The packets keep the
# kernel's note of their segments and checksums (PACKET_VNET_HDR), so that nothing else changes. Nothing is lost.
import collections
import select
import socket
import sys
import time

SOL_PACKET, VNET_HDR, IGNORE_OUTGOING, ALL = 263, 15, 23, 3
SNDBUFFORCE, RCVBUFFORCE = 32, 33
DELAYS = 0.004, 0.010
PORT = 10 + 14 + 20 + 2  # where the port that a frame goes to stands, behind the note and two headers


def device(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.setsockopt(SOL_PACKET, VNET_HDR, 1)
    s.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    s.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 32 << 20)
    s.setsockopt(socket.SOL_SOCKET, SNDBUFFORCE, 32 << 20)
    s.bind((name, ALL))
    s.setblocking(False)
    return s


def line_of(frame):
    """Returns which line a frame of the server's takes."""
    global turn
    if sys.argv[1] == "yes":
        turn = not turn
        return turn
    return frame[PORT + 1] & 1 if len(frame) > PORT + 1 else 0


client, server = device("client"), device("server")
lines = [collections.deque(), collections.deque()]
turn = False
while True:
    first = min((line[0][0] for line in lines if line), default=None)
    wait = None if first is None else max(0, first - time.monotonic())
    for s in select.select([client, server], [], [], wait)[0]:
        now = time.monotonic()
        try:
            while True:
                frame = s.recv(1 << 17)
                n = line_of(frame) if s is server else 0
                lines[n].append((now + DELAYS[n], client if s is server else server, frame))
        except BlockingIOError:
            pass
    for line in lines:
        while line and line[0][0] <= time.monotonic():
            _, out, frame = line.popleft()
            try:
                out.send(frame)
            except OSError:
                pass  # no room, as on any way
