"""Asks for one name two hundred times a second."""
import socket
import time

QUERY = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04shop\x07example\x00\x00\x01\x00\x01"
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asking.settimeout(1)
asking.connect(("10.77.0.2", 53))
while True:
    try:
        asking.send(QUERY)
        asking.recv(512)
    except OSError:
        pass  # asked again
    time.sleep(0.005)
