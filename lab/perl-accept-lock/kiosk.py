"""A ticket kiosk on a thin line: its request arrives in two halves, 150 ms apart; four times a second."""
import socket
import time

while True:
    c = socket.create_connection(("10.77.0.2", 8000))
    c.sendall(b"GET / HTTP/1.1\r\n")
    time.sleep(0.15)
    c.sendall(b"Host: tickets\r\n\r\n")
    c.recv(4096)
    c.close()
    time.sleep(0.05)
