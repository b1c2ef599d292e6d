"""far.py MS: the way to the other site. What goes to the stock service (port 8443) and comes from it takes MS milliseconds each way; all else goes through the switch as ever."""
import collections
import ctypes
import select
import socket
import struct
import subprocess
import sys
import time

SOL_PACKET, VNET_HDR, IGNORE_OUTGOING, ALL = 263, 15, 23, 3
SO_ATTACH_FILTER = 26
delay = float(sys.argv[1]) / 1000
RULES = """table bridge far {
    chain forward {
        type filter hook forward priority 0
        tcp dport 8443 drop
        tcp sport 8443 drop
    }
}
"""
# IPv4, TCP, and either port 8443: the whole frame; nothing of all others.
FILTER = [(0x28, 0, 0, 12), (0x15, 0, 8, 0x800), (0x30, 0, 0, 23), (0x15, 0, 6, 6), (0xB1, 0, 0, 14),
          (0x48, 0, 0, 14), (0x15, 2, 0, 8443), (0x48, 0, 0, 16), (0x15, 0, 1, 8443), (0x6, 0, 0, 0x40000), (0x6, 0, 0, 0)]


def device(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in FILTER))
    s.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(FILTER), ctypes.addressof(code)))
    s.setsockopt(SOL_PACKET, VNET_HDR, 1)
    s.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    s.bind((name, ALL))
    s.setblocking(False)
    return s


client, server = device("client"), device("server")
beyond = {client: server, server: client}
subprocess.run(["nft", "-f", "-"], input=RULES.encode(), check=True)
line = collections.deque()
while True:
    wait = max(0, line[0][0] - time.monotonic()) if line else None
    for s in select.select([client, server], [], [], wait)[0]:
        due = time.monotonic() + delay
        try:
            while True:
                line.append((due, beyond[s], s.recv(1 << 17)))
        except BlockingIOError:
            pass
    while line and line[0][0] <= time.monotonic():
        _, out, frame = line.popleft()
        try:
            out.send(frame)
        except OSError:
            pass  # no room, as on any way
