"""A load balancer's check, over and over: connects, and takes the connection back with a reset, as such checks do; 200 a second."""
import socket
import struct
import time

while True:
    c = socket.create_connection(("10.77.0.2", 80))
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.close()
    time.sleep(0.005)
