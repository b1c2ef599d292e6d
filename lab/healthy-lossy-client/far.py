"""One visitor at 10.77.0.3, who fetches a large file again and again."""
import socket

while True:
    with socket.create_connection(("10.77.0.2", 80), source_address=("10.77.0.3", 0)) as c:
        c.sendall(b"GET /large.bin HTTP/1.0\r\n\r\n")
        while c.recv(1 << 16):
            pass
