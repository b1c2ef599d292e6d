"""Machines that send a datagram of 12 KB each, 150 a second together; and a broken one, of whose datagrams only the beginning comes."""
import os
import socket
import struct
import time

SERVER, PORT = "10.77.0.2", 12201
good = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
broken = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
DATA = os.urandom(12000)


def beginning(n):
    """The first fragment of a datagram, with the flag that more follow."""
    udp = struct.pack("!HHHH", 5555, PORT, 12008, 0) + DATA[:1400]
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), n & 0xFFFF, 0x2000, 64, 17, 0, socket.inet_aton("10.77.0.1"), socket.inet_aton(SERVER))
    return head + udp


n = 0
while True:
    n += 1
    good.sendto(DATA, (SERVER, PORT))
    if n % 20 == 0:
        broken.sendto(beginning(n), (SERVER, 0))
    time.sleep(1 / 150)
