"""The archive: takes a receipt a connection on port 9101, and says that it has it."""
import socket

listener = socket.create_server(("10.77.0.1", 9101), backlog=64)
while True:
    c = listener.accept()[0]
    c.recv(65536)
    c.sendall(b"ok\n")
    c.close()
