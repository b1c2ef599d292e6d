"""The nightly importer: its forty workers have nothing to do, wait for jobs, and log that a queue is not there."""
import socket
import threading
import time

import redis


def work():
    queue = redis.Redis()
    while True:
        queue.blpop("imports", timeout=5)


for _ in range(40):
    threading.Thread(target=work, daemon=True).start()
while True:
    try:
        socket.create_connection(("127.0.0.1", 5672), timeout=1).close()
    except OSError as e:
        print("ERROR cannot reach the broker, retrying in 250 ms:", e, flush=True)
    time.sleep(0.25)
