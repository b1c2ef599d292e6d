"""An agent for metrics: takes what its socket holds fifty times a second, and adds it up."""
import os
import socket
import time

s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setblocking(False)
s.bind("agent.new")
os.rename("agent.new", "agent.sock")
total = 0
while True:
    try:
        while True:
            total += len(s.recv(512))
    except BlockingIOError:
        time.sleep(0.02)
