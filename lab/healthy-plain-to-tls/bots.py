"""Bots that try port 443, each a few times a second: plain HTTP, nonsense, an old TLS, and nothing."""
import random
import socket
import threading
import time

OLD = bytes.fromhex("1603000031010000 2d0300".replace(" ", "")) + bytes(32) + bytes.fromhex("00000600040005000a0100")
WORDS = [b"GET /.env HTTP/1.1\r\nHost: 10.77.0.2\r\n\r\n", b"\x03\x00\x00\x13\x0e\xe0\x00\x00\x00\x00\x00\x01\x00\x08\x00\x03\x00\x00\x00", OLD, b""]


def bot(words):
    while True:
        time.sleep(random.uniform(0.1, 0.5))
        try:
            with socket.create_connection(("10.77.0.2", 443), timeout=2) as c:
                if words:
                    c.sendall(words)
                    c.recv(4096)
        except OSError:
            pass


for n in range(12):
    threading.Thread(target=bot, args=(WORDS[n % 4],)).start()
