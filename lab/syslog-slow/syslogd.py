"""Takes lines from the datagram socket ./log, and so many seconds for each."""
import socket
import sys
import time

s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("log")
while True:
    s.recv(4096)
    time.sleep(float(sys.argv[1]))
