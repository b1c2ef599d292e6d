#!/usr/bin/env python3
"""Makes up conversations of TCP whose few numbers meet often, so that rules for labels are tried where they collide.

    made.py SEED CONVERSATIONS FILE

What tshark 4.4.18 says of such a file, frame by frame, has to be what we say.
"""
import random
import struct
import sys

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
LEAST, MASK = 1e-6, 0xffffffff


class Side:
    def __init__(self, r):
        self.isn = r.choice([r.getrandbits(32), 0, MASK, MASK - 15, 1, 1000])
        self.next, self.last_ack = self.isn, 0
        self.sent = []  # (from, to), SYN and FIN left out
        self.window = r.choice([0, 100, 1000, 64240, 65535])
        self.scale = r.choice([None, None, 0, 2, 7, 14, 15])
        self.sack = r.random() < .7

    def syn_options(self):
        b = struct.pack("!BBH", 2, 4, 1460)
        if self.sack:
            b += b"\1\1\4\2"
        if self.scale is not None:
            b += b"\1" + struct.pack("!BBB", 3, 3, self.scale)
        return b


class Conversation:
    def __init__(self, r, number, now):
        self.r, self.now, self.packets, self.id = r, now, [], number * 100
        self.v6, self.stamps, self.odd = r.random() < .1, r.random() < .5, r.random() < .35
        self.ports = 40000 + number % 20000, r.choice([80, 443, 5000])
        self.hosts = r.choice([(1, 2), (2, 1)])
        self.trip = r.choice([.00005, .0005, .002, .01, .05, .2])
        self.sides = Side(r), Side(r)

    def wait(self):
        trip, some = self.trip, self.r.random()
        ns = self.r.choice([LEAST, 1e-5, trip / 2, trip * .99, trip, trip * 1.01, .0029, .003, .0031, .0199, .02, .0201, .2, 1, trip * some, .005 * some])
        self.now += -ns if self.r.random() < .01 else ns

    def send(self, i, seq, ack, flags, n, options=b"", window=None):
        self.wait()
        if self.stamps and not flags & SYN and len(options) <= 28:
            options += b"\1\1" + struct.pack("!BBII", 8, 10, int(self.now * 1000) & MASK, 0)
        options += b"\1" * (-len(options) % 4)
        window = self.sides[i].window if window is None else window
        ports, (a, b) = self.ports[::1 - 2 * i], self.hosts[::1 - 2 * i]
        tcp = struct.pack("!HHIIBBHHH", *ports, seq & MASK, ack & MASK if flags & ACK else 0, (5 + len(options) // 4) << 4, flags, window, 0, 0)
        tcp += options + b"x" * n
        self.id += 1
        if self.v6:
            ip = b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, len(tcp), 6, 64) + b"\xfd".ljust(15, b"\0") + bytes([a]) + b"\xfd".ljust(15, b"\0") + bytes([b])
        else:
            ip = b"\x08\0" + struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), self.id & 0xffff, 0x4000, 64, 6, 0) + bytes([10, 0, 0, a, 10, 0, 0, b])
        self.packets.append((self.now, b"\2\0\0\0\0\1\2\0\0\0\0\2" + ip + tcp))

    def open(self):
        client, server = self.sides
        kind, r = self.r.random(), self.r
        if kind < .75:
            self.send(0, client.isn, 0, SYN, r.choice([0] * 9 + [5]), client.syn_options())
            while r.random() < .15:
                self.send(0, client.isn + r.choice([0, 0, 0, 1]), 0, SYN, 0, client.syn_options())
            client.next, server.next = client.isn + 1, server.isn + 1
        if kind < .7:
            self.send(1, server.isn, client.next, SYN | ACK, 0, server.syn_options())
            while r.random() < .1:
                self.send(1, server.isn + r.choice([0, 0, 5]), client.next, SYN | ACK, 0, server.syn_options())
            if r.random() < .9:
                self.send(0, client.next, server.next, ACK, 0)
        client.last_ack, server.last_ack = server.next, client.next

    def what(self, me, peer):
        """The numbers, flags and length of the next segment."""
        r, flags, kind = self.r, ACK | PSH * (self.r.random() < .3), self.r.random()
        if kind < .35:  # the next data
            return me.next, r.choice([1, 10, 100, 1000, 1460]), flags
        if kind < .5 and me.sent:  # data again, or a part
            seq, end = r.choice(me.sent[-6:])
            return seq, min(end - seq & MASK, 1460) if r.random() < .8 else r.choice([1, 10, 100]), flags
        if kind < .75:
            return me.next, 0, flags
        if kind < .82:  # like a keep-alive
            return me.next - 1, r.choice([0, 1, 1, 2, 100]), flags
        if kind < .9:  # with a gap
            return me.next + r.choice([1, 10, 100, 1460]), r.choice([0, 10, 100, 1460]), flags
        if kind < .93:  # like a probe
            return me.next, 1, flags
        if kind < .95:
            return me.next, r.choice([0, 0, 10]), flags | FIN
        if kind < .965:
            return r.choice([me.next, me.next + 1, peer.last_ack]), 0, r.choice([RST, RST | ACK])
        if kind < .985:
            return r.choice([me.isn, me.isn, me.next, me.isn + 12345]), 0, r.choice([SYN, SYN, SYN | ACK])
        return me.next - r.choice([1, 5, 50]), r.choice([5, 50, 200]), flags

    def ack(self, me, peer):
        kind, r = self.r.random(), self.r
        if kind < .45:
            return peer.next
        if kind < .75 or kind < .9 and not peer.sent:
            return me.last_ack
        if kind < .9:
            return r.choice(r.choice(peer.sent))
        return me.last_ack + 1 if kind < .95 else peer.next + r.choice([1, 1000, 1460])

    def step(self):
        r, i = self.r, self.r.randrange(2)
        me, peer = self.sides[i], self.sides[1 - i]
        seq, n, flags = self.what(me, peer)
        if n and peer.window and r.random() < .1:  # to the end of the window
            room = peer.last_ack + (peer.window << min(peer.scale or 0, 14)) - seq & MASK
            n = room if 0 < room < 3000 else n
        ack, options, window = self.ack(me, peer), b"", None
        if flags & SYN:
            options = me.syn_options()
        elif peer.sent and r.random() < .2:
            blocks = [r.choice(peer.sent[-4:]) for _ in range(r.choice([1, 1, 2, 3]))]
            options = b"\1\1" + struct.pack("!BB", 5, 2 + 8 * len(blocks)) + b"".join(struct.pack("!II", *b) for b in blocks)
        if self.odd:
            window = r.choice([me.window] * 6 + [0, 0, me.window + 1 & 0xffff])
            if r.random() < .2:
                me.window = r.choice([0, 1, 50, 100, 1000, 64240, window])
        self.send(i, seq, ack, flags, n, options, window)
        end = seq + n + bool(flags & (SYN | FIN)) & MASK
        if end != seq & MASK:
            me.sent.append((seq & MASK, seq + n & MASK))
            if (end - me.next & MASK) < 1 << 31 and r.random() < .95:
                me.next = end
        me.last_ack = ack & MASK


def main():
    seed, conversations, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    r, now = random.Random(seed), 1700000000.0
    with open(name, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for number in range(conversations):
            c = Conversation(r, number, now)
            c.open()
            for _ in range(r.choice([3, 8, 20, 50])):
                c.step()
            now = max(now, c.now) + r.choice([LEAST, .001, .5])
            for at, frame in c.packets:
                ns = round(at * 1e6) * 1000
                out.write(struct.pack("<IIII", ns // 10**9, ns % 10**9, len(frame), len(frame)) + frame)


main()
