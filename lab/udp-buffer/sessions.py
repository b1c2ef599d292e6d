# A service over UDP, quick, with a receive buffer of the given size.
import socket
import sys

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(sys.argv[2]))
s.bind(("127.0.0.1", int(sys.argv[1])))
while True:
    query, who = s.recvfrom(2048)
    s.sendto(query, who)
