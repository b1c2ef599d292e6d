"""A terminal whose output was stopped: one command to redis, and its answers are never read."""
import socket
import sys
import time

c = socket.create_connection(("127.0.0.1", 6379))
c.sendall(sys.argv[1].encode() + b"\r\n")
time.sleep(100000)
