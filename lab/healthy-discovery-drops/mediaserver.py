"""A media server whose discovery is broken: it is bound to port 1900, and never reads."""
import socket
import time

ssdp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ssdp.bind(("", 1900))
while True:
    time.sleep(60)
