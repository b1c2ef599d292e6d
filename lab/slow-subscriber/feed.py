"""Subscribes to the hub and reads what comes, with a pause of so many milliseconds after each 16 KiB."""
import socket
import sys
import time

pause = float(sys.argv[1]) / 1000
s = socket.create_connection(("10.77.0.2", 9100))
while s.recv(16384):
    time.sleep(pause)
