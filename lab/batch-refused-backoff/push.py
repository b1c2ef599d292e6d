"""Sends receipts to the archive: push.py PORT... tries each port three times, and waits longer after each failure."""
import socket
import sys
import time

ports = [int(p) for p in sys.argv[1:]]
receipt = b"r" * 4096


def send(port):
    for pause in (0.1, 0.3, 0.9):
        try:
            with socket.create_connection(("10.77.0.1", port), 5) as c:
                c.sendall(receipt)
                return c.recv(16) == b"ok\n"
        except ConnectionRefusedError:
            time.sleep(pause)
    return False


began, sent = time.monotonic(), 0
while True:
    if any(send(p) for p in ports):
        sent += 1
    if time.monotonic() - began > 3:
        print(f"{sent / (time.monotonic() - began):.2f} receipts/s", flush=True)
        began, sent = time.monotonic(), 0
