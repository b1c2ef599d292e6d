"""Connects to closed ports, a thousand times a second, and goes on when it is refused."""
import itertools
import socket
import time

for port in itertools.cycle(range(20000, 30000)):
    try:
        socket.create_connection(("10.77.0.2", port), timeout=0.5).close()
    except OSError:
        pass
    time.sleep(0.001)
