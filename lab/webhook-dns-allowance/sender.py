"""Delivers events without end, THREADS at a time: sender.py HOST PORT THREADS"""
import socket
import sys
import threading
import time

EVENT = b'POST /hook HTTP/1.1\r\nHost: %s\r\nContent-Length: 17\r\n\r\n{"event":"paid"}\n'
host, port, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def deliver():
    while True:
        try:
            with socket.create_connection((host, port), timeout=10) as c:
                c.sendall(EVENT % host.encode())
                c.recv(4096)
        except OSError as e:
            print("delivery put off:", e, flush=True)
        time.sleep(0.02)  # the next event is read from the outbox


for _ in range(threads):
    threading.Thread(target=deliver).start()
