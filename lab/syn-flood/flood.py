"""Sends SYNs to ADDRESS PORT, RATE a second, each from another made-up address
of the range for benchmarks (198.18.0.0/15) and another port."""
import random
import socket
import struct
import sys
import time


def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def syn(source, target, port):
    """One IP packet with a SYN."""
    tcp = struct.pack("!HHIIBBHHH", random.randrange(1024, 65535), port,
                      random.getrandbits(32), 0, 5 << 4, 2, 64240, 0, 0)
    pseudo = source + target + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
    # length, id and checksum of the IP header are filled in by the kernel
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, socket.IPPROTO_TCP, 0)
    return ip + source + target + tcp


address, port, rate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if rate == 0:
    sys.exit(0)
target = socket.inet_aton(address)
packets = [syn(struct.pack("!I", 0xC6120000 + random.randrange(1 << 17)), target, port)
           for _ in range(50000)]
out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
began, sent = time.monotonic(), 0
while True:
    for _ in range(rate // 100):
        out.sendto(packets[sent % len(packets)], (address, 0))
        sent += 1
    ahead = began + sent / rate - time.monotonic()
    if ahead > 0:
        time.sleep(ahead)
