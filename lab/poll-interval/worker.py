"""Looks into the spool for orders, prints their labels (no work to speak of), and looks again after a pause: worker.py SECONDS."""
import os
import socket
import sys
import time

pause = float(sys.argv[1])
done = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
while True:
    for name in os.listdir("spool"):
        os.remove("spool/" + name)
        done.sendto(name.encode(), "done")
    time.sleep(pause)
