"""A switch that announces itself (LLDP, and a protocol that only its maker knows), 300 times a second."""
import itertools
import socket
import time

s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
source = s.getsockname()[4]
for kind in itertools.cycle([b"\x88\xcc", b"\x89\x57"]):
    s.send(bytes.fromhex("ffffffffffff") + source + kind + bytes(46))
    time.sleep(1 / 300)
