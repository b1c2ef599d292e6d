"""Opens two hundred connections to its server, and never looks at them again."""
import socket
import time

kept = [socket.create_connection(("10.77.0.1", 9200)) for _ in range(200)]
while True:
    time.sleep(1)
