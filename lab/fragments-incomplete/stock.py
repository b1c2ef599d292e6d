"""The stock: answers each question with a list of 4 KB, which takes three packets."""
import socket

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.77.0.1", 9000))
while True:
    question, who = s.recvfrom(512)
    s.sendto(question + b"s" * 4096, who)
