"""A customer's system, at which webhooks arrive: it takes four seconds for each."""
import socket
import threading
import time


def take(c):
    try:
        c.recv(65536)
        time.sleep(4)
        c.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
    except OSError:
        pass
    c.close()


listener = socket.create_server(("127.0.0.1", 9100), backlog=128)
while True:
    threading.Thread(target=take, args=(listener.accept()[0],), daemon=True).start()
