"""The service that is there: takes a connection on port 9101, and closes it."""
import socket

listener = socket.create_server(("10.77.0.1", 9101), backlog=64)
while True:
    listener.accept()[0].close()
