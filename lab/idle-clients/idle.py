"""Browsers that connect ahead of time: COUNT connections that say nothing, until they are ended."""
import socket
import sys
import time

idle = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(int(sys.argv[3]))]
while True:
    time.sleep(1)
