#!/usr/bin/env python3
"""Makes up connections whose segments have odd options, cut anywhere when they were captured.

    options.py SEED CONNECTIONS FILE

What tshark 4.4.19 says of such a file, frame by frame, has to be what we say. Left out is what
Wireshark looks into and we do not: MPTCP, and a SACK option that has no block.
"""
import random
import struct
import sys

SIZES = {2: 4, 3: 3, 4: 2, 5: 0, 6: 6, 8: 10, 14: 3, 19: 18, 28: 4, 34: 10, 65: 4}
SYN, PSH, ACK, FIN = 2, 8, 16, 1


def block(r, isn):
    left = isn + r.choice([1, 1001, 2001, 3001, -999, -1000000, 1 << 31, r.getrandbits(32)])
    return struct.pack("!II", left & 0xffffffff, left + r.choice([1000, 1000, 2000, 1 << 30, r.getrandbits(32)]) & 0xffffffff)


def option(r, isn):
    kind = r.choice([0, 1, 1, 2, 3, 4, 5, 5, 5, 5, 6, 8, 8, 14, 19, 28, 34, 65])
    if kind < 2:
        return bytes([kind])
    if kind == 5:
        blocks = b"".join(block(r, isn) for _ in range(r.randint(1, 4)))
        return bytes([5, 2 + len(blocks) + r.choice([0, 0, 0, 0, 1, 5])]) + blocks
    size = SIZES[kind] if r.random() < .75 else r.choice([0, 1, 2, 3, 4, 8, 9, 10, 11, 17, 18, 40, 255])
    return bytes([kind, size]) + r.randbytes(max(0, min(size, 20) - 2))


def options(r, isn):
    while True:
        b = b"".join(option(r, isn) for _ in range(r.choice([1, 1, 2, 3])))[:40]
        if sound(b):
            return b


def sound(b):
    """No SACK without a block, as the list is read."""
    b += b"\1" * (-len(b) % 4)
    while len(b) > 1 and b[0]:
        if b[0] == 1:
            b = b[1:]
        elif b[1] < 2 or b[1] > len(b):
            return True
        elif b[0] == 5 and b[1] < 10 or b[0] == 30:
            return False
        else:
            b = b[b[1]:]
    return True


def connection(r, port, send):
    isn = r.choice([0, 999, (1 << 31) - 3000, (1 << 32) - 3000, r.getrandbits(32)])
    syn = [b"\2\4\5\xb4" + r.choice([b"", b"\4\2\x08\x0a\0\0\0\1\0\0\0\0"]) + r.choice([b"", b"\1\3\3\7"]), options(r, isn)]
    if r.random() < .8:
        send(0, port, 999, 0, SYN, 1000, r.choice(syn))
        send(1, port, isn, 1000, SYN | ACK, 1000, r.choice(syn))
        send(0, port, 1000, isn + 1, ACK, r.choice([1, 10, 1000]))
    for i in range(r.choice([1, 3, 6])):
        if r.random() < .8:
            send(1, port, isn + 1 + 1000 * i, 1000, PSH | ACK, 100, n=1000)
    for _ in range(r.randint(1, 5)):
        send(0, port, 1000, isn + 1 + r.choice([0, 0, 0, 3000]), ACK, r.choice([1, 1000, 1000, 1000]), options(r, isn))
    for _ in range(2):
        send(1, port, isn + 1 + r.choice([0, 1000, 1500, 2000, 3000]), 1000, PSH | ACK, 100, n=1000)
    if r.random() < .3:
        send(0, port, 1000, isn + 3001, FIN | ACK, 1000, options(r, isn))


def main():
    seed, count, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    r, now = random.Random(seed), 1_700_000_000_000_000
    with open(name, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))

        def send(i, port, seq, ack, flags, window, opts=b"", n=0):
            nonlocal now
            now += r.choice([100, 1000, 5000])
            opts += b"\1" * (-len(opts) % 4)
            ports, (a, b) = (port, 80)[::1 - 2 * i], (1, 2)[::1 - 2 * i]
            header = struct.pack("!HHIIBBHHH", *ports, seq & 0xffffffff, ack & 0xffffffff, (5 + len(opts) // 4) << 4, flags, window, 0, 0) + opts
            ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(header) + n, 0, 0x4000, 64, 6, 0) + bytes([10, 0, 0, a, 10, 0, 0, b])
            frame = b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + ip + header
            taken = len(frame) if not opts or r.random() < .6 else len(frame) - r.randrange(len(opts) + 1)
            f.write(struct.pack("<IIII", now // 1_000_000, now % 1_000_000, taken, len(frame) + n) + frame[:taken])

        for port in range(20000, 20000 + count):
            connection(r, port, send)


main()
