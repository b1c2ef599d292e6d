"""The backup host: takes what it is sent at 10.77.0.1:8730, 12 MB a second, and keeps nothing."""
import socket
import time

listener = socket.create_server(("10.77.0.1", 8730))
while True:
    c = listener.accept()[0]
    while c.recv(120000, socket.MSG_WAITALL):
        time.sleep(0.01)
    c.close()
