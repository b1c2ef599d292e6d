"""Looks each second which of the services are there: check.py PORT..."""
import socket
import sys
import time

while True:
    for port in sys.argv[1:]:
        try:
            socket.create_connection(("10.77.0.1", int(port)), 1).close()
        except OSError:
            print(port, "refuses, as it stands by", flush=True)
    time.sleep(1)
