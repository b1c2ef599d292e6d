"""Imports orders, one after the other: asks the partner about each, and adds a line to the list that
all importers share. Holds the lock file around all of it (all), or while it writes the line (line).
Says every second how many."""
import fcntl
import socket
import sys
import time

partner = socket.create_connection(("10.77.0.1", 8100))
partner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
lock = open("orders.lock", "w")
done, said = 0, time.monotonic()
while True:
    if sys.argv[1] == "all":
        fcntl.flock(lock, fcntl.LOCK_EX)
    partner.sendall(b"GET /order HTTP/1.1\r\nHost: partner\r\n\r\n")
    partner.recv(4096)
    if sys.argv[1] == "line":
        fcntl.flock(lock, fcntl.LOCK_EX)
    with open("orders.csv", "a") as f:
        f.write("order,12.00\n")
    fcntl.flock(lock, fcntl.LOCK_UN)
    done += 1
    if time.monotonic() - said >= 1:
        print(done, "orders", flush=True)
        done, said = 0, time.monotonic()
