# A small HTTP server: threads (0: one for each connection), how a request is
# held up (sleep, lock, line) and for how many milliseconds.
import socket
import sys
import threading
import time

port, threads, how, hold = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]) / 1000
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n%s\r\nok\n"
lock = threading.Lock()


def work():
    if how == "lock":
        with lock:
            time.sleep(hold)
    else:
        time.sleep(hold)


def serve(connection, keep):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while connection.recv(4096):
            work()
            connection.sendall(REPLY % (b"" if keep else b"Connection: close\r\n"))
            if not keep:
                break
    except OSError:
        pass
    connection.close()


def take(listener):
    while True:
        serve(listener.accept()[0], False)


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("", port))
listener.listen(1024)
for _ in range(threads):
    threading.Thread(target=take, args=(listener,)).start()
while threads == 0:
    threading.Thread(target=serve, args=(listener.accept()[0], True), daemon=True).start()
