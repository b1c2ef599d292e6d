"""The televisions of an office, which look for media servers all the time."""
import socket
import time

SEARCH = b'M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: "ssdp:discover"\r\nMX: 1\r\nST: ssdp:all\r\n\r\n'
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for _ in range(20):
        s.sendto(SEARCH, ("10.77.0.2", 1900))
    time.sleep(0.05)
