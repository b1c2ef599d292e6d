"""A mail server that greets whoever connects, as its protocol has it, and answers each line."""
import socket
import threading


def serve(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        c.sendall(b"220 mail.example ready\r\n")
        for line in c.makefile("rb"):
            c.sendall(b"250 very well\r\n")
            if line.startswith(b"QUIT"):
                break
    except OSError:
        pass
    c.close()


listener = socket.create_server(("127.0.0.1", 2525), backlog=1024)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
