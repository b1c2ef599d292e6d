"""A name server: every name is at 10.77.0.2, and none has an IPv6 address. It says nothing to one type of question: names.py TYPE."""
import socket
import sys

silent_to = int(sys.argv[1])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.77.0.1", 53))
while True:
    query, who = s.recvfrom(512)
    end = query.index(0, 12) + 5
    kind = int.from_bytes(query[end - 4:end - 2], "big")
    if kind == silent_to:
        continue
    found = kind == 1
    reply = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if found else b"\0\0") + bytes(4) + query[12:end]
    if found:
        reply += b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\x04\x0a\x4d\0\x02"
    s.sendto(reply, who)
