"""Takes the measurements of the machines in the hall: a datagram of 12 KB each."""
import socket

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
s.bind(("", 12201))
while True:
    s.recv(65536)
