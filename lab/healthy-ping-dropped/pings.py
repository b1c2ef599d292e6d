"""A monitor that pings the server thirty times a second, and notes what was answered."""
import socket
import struct
import time

s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
s.setblocking(False)
sent = answered = 0


def checksum(data):
    n = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    n = (n >> 16) + (n & 0xFFFF)
    return ~(n + (n >> 16)) & 0xFFFF


while True:
    body = struct.pack("!HHd", 4711, sent & 0xFFFF, time.time()) + bytes(44)
    s.sendto(struct.pack("!BBH", 8, 0, checksum(b"\x08\0\0\0" + body)) + body, ("10.77.0.2", 0))
    sent += 1
    time.sleep(1 / 30)
    try:
        while True:
            answered += s.recv(2048)[20] == 0
    except BlockingIOError:
        pass
    if sent % 30 == 0:
        with open("pings", "a") as f:
            f.write(f"{sent} sent, {100 - 100 * answered / sent:.0f} % lost\n")
