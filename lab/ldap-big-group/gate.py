"""gate.py all|one: lets whoever is in the group staff in. all: fetches the group and looks whether he is among its members; one: asks whether there is a group staff of which he is a member."""
import random
import socket
import sys
import threading

import web

kept = threading.local()


def ber(tag, *parts):
    body = b"".join(parts)
    n = len(body)
    length = bytes([n]) if n < 128 else b"\x82" + n.to_bytes(2, "big")
    return bytes([tag]) + length + body


def whole(n):
    return ber(2, bytes([n]))


def equal(name, value):
    return ber(0xA3, ber(4, name), ber(4, value))


def search(condition, attribute):
    return ber(0x30, whole(2), ber(0x63, ber(4, b"dc=example"), ber(10, b"\2"), ber(10, b"\0"), whole(0), whole(0), ber(1, b"\0"),
                                   condition, ber(0x30, ber(4, attribute))))


def message(file):
    """Reads a message, and returns the tag of what is in it, and all of it."""
    n = file.read(2)[1]
    if n > 127:
        n = int.from_bytes(file.read(n & 127), "big")
    body = file.read(n)
    return body[2 + body[1]], body


def entries(question):
    if not hasattr(kept, "file"):
        kept.c = socket.create_connection(("127.0.0.1", 389))
        kept.c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kept.file = kept.c.makefile("rb")
        kept.c.sendall(ber(0x30, whole(1), ber(0x60, whole(3), ber(4), ber(0x80))))
        message(kept.file)
    kept.c.sendall(question)
    found = []
    while (got := message(kept.file))[0] != 0x65:
        found.append(got[1])
    return found


def work():
    user = b"user%05d" % random.randrange(40000)
    if sys.argv[1] == "all":
        member = any(user in group for group in entries(search(equal(b"cn", b"staff"), b"memberUid")))
    else:
        member = entries(search(ber(0xA0, equal(b"cn", b"staff"), equal(b"memberUid", user)), b"1.1"))
    if not member:
        raise RuntimeError("not of the staff")
    return b"come in\n"


web.serve(8000, work)
