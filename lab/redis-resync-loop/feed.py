"""Prices from the exchange: feed.py fill writes 20,000 of 10 KB, feed.py feed changes six hundred of them a second."""
import os
import random
import socket
import sys
import time

c = socket.create_connection(("127.0.0.1", 6379))
file = c.makefile("rb")


def write(numbers):
    body = os.urandom(10240)
    c.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$11\r\nprice:%05d\r\n$%d\r\n%s\r\n" % (n, len(body), body) for n in numbers))
    for _ in numbers:
        file.readline()


if sys.argv[1] == "fill":
    for first in range(0, 20000, 100):
        write(range(first, first + 100))
else:
    while True:
        write(random.sample(range(20000), 30))
        time.sleep(0.05)
