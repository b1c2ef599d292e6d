"""Twenty nodes of a load balancer, each of which checks the shop once a second, on a connection that it keeps."""
import http.client
import random
import threading
import time


def check():
    time.sleep(random.random())
    while True:
        began = time.monotonic()
        try:
            c = http.client.HTTPConnection("10.77.0.2", 8000, timeout=5)
            while True:
                c.request("GET", "/health")
                c.getresponse().read()
                time.sleep(max(0, began + 1 - time.monotonic()))
                began = time.monotonic()
        except OSError:
            time.sleep(1)


for _ in range(20):
    threading.Thread(target=check).start()
