"""A proxy that looks for viruses in one reply at a time, which takes it 25 ms."""
import socket
import threading
import time
import urllib.parse

scanner = threading.Lock()


def relay(c):
    request = c.recv(4096)
    if request:
        address = urllib.parse.urlsplit(request.split()[1].decode())
        reply = b""
        with socket.create_connection((address.hostname, address.port)) as s:
            s.sendall(request)
            while part := s.recv(4096):
                reply += part
        with scanner:
            time.sleep(0.025)
        c.sendall(reply)
    c.close()


listener = socket.create_server(("", 3128), backlog=1024)
while True:
    threading.Thread(target=relay, args=(listener.accept()[0],), daemon=True).start()
