"""Ten partners, each of which sends twenty webhooks of 800 KB a second; says every second how many were answered and how many failed."""
import collections
import http.client
import threading
import time

body = bytes(800 << 10)
ends = collections.Counter()


def partner():
    while True:
        c = http.client.HTTPConnection("10.77.0.2", 8000, timeout=30)
        try:
            c.request("POST", "/hook", body)
            ends[c.getresponse().status] += 1
        except OSError as e:
            ends[type(e).__name__] += 1
        c.close()
        time.sleep(0.05)


for _ in range(10):
    threading.Thread(target=partner, daemon=True).start()
while True:
    time.sleep(1)
    was, ends = ends, collections.Counter()
    print(", ".join(f"{n} {what}" for what, n in was.items()), flush=True)
