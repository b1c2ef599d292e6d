"""An agent's debug port: it listens for one connection at a time, and never takes any."""
import socket
import time

s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("", 9999))
s.listen(1)
while True:
    time.sleep(60)
