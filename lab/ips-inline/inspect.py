"""An intrusion prevention system: looks for PATTERNS patterns in each packet that the kernel hands it (NFQUEUE 0), then lets it pass."""
import re
import socket
import struct
import sys

NETFILTER, QUEUE, PACKET, VERDICT, CONFIG = 12, 3, 0, 1, 2
patterns = [re.compile(b"(?i)cmd%d[a-z]+=.{0,9}exec" % i) for i in range(int(sys.argv[1]))]
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER)
s.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
s.bind((0, 0))


def attribute(kind, data):
    return struct.pack("=HH", len(data) + 4, kind) + data + bytes(-len(data) % 4)


def tell(message, data):
    s.send(struct.pack("=IHHIIBBH", 20 + len(data), QUEUE << 8 | message, 1, 0, 0, 0, 0, 0) + data)


tell(CONFIG, attribute(1, struct.pack("!BxH", 1, socket.AF_INET)))  # bind
tell(CONFIG, attribute(2, struct.pack("!IB", 65535, 2)))  # the whole packet
tell(CONFIG, attribute(3, struct.pack("!I", 1024)))  # so many may wait
while True:
    try:
        got = s.recv(1 << 17)
    except OSError:
        continue  # more came than there was room for
    if struct.unpack_from("=H", got, 4)[0] != QUEUE << 8 | PACKET:
        continue
    number = got[24:28]  # the first attribute begins with the packet's
    for pattern in patterns:
        pattern.search(got, 28)
    tell(VERDICT, attribute(2, struct.pack("!I", 1) + number))
