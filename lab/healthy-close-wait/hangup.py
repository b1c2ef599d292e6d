"""Closes every connection at once."""
import socket

listener = socket.create_server(("10.77.0.1", 9200), backlog=512)
while True:
    listener.accept()[0].close()
