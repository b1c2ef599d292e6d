"""Users whose sessions are read and written every 100 ms; prints what they waited: sessions.py HOST PORT COUNT"""
import socket
import sys
import threading
import time

ASK = b"*3\r\n$3\r\nSET\r\n$5\r\ns:%03d\r\n$300\r\n" + b"x" * 300 + b"\r\n*2\r\n$3\r\nGET\r\n$5\r\ns:%03d\r\n"
waits = []


def user(n):
    c = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        begin = time.monotonic()
        c.sendall(ASK % (n, n))
        got = b""
        while not got.endswith(b"x\r\n"):
            got += c.recv(4096)
        waits.append(time.monotonic() - begin)
        time.sleep(0.1)


for n in range(int(sys.argv[3])):
    threading.Thread(target=user, args=(n,)).start()
while True:
    time.sleep(2)
    if waits:
        w = sorted(waits)
        waits.clear()
        print("p50 %.2f ms, p99 %.2f ms, %d asked" % (w[len(w) // 2] * 1e3, w[len(w) * 99 // 100] * 1e3, len(w)), flush=True)
