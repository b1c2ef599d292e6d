"""stock.py PORT: says what is in stock, four requests at a time, 20 ms each; a line is a request, and a connection asks as often as it likes."""
import socket
import sys
import threading
import time

places = threading.Semaphore(4)


def answer(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while c.recv(100):
            with places:
                time.sleep(0.02)
            c.sendall(b"7 in stock\n")
    except OSError:
        pass
    c.close()


listener = socket.create_server(("10.77.0.1", int(sys.argv[1])), backlog=256)
while True:
    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
