"""The ticket office: answers each datagram, a ticket's number, with whether it is good."""
import socket

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.77.0.1", 7300))
while True:
    ticket, who = s.recvfrom(512)
    s.sendto(ticket + b" good", who)
