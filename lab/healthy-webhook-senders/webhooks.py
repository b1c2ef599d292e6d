"""Tells customers' systems of what was shipped: twenty senders, each of which waits for a slow system, as long as that takes, and goes on to the next."""
import threading
import time
import urllib.request


def sender(n):
    time.sleep(n * 0.2)
    while True:
        with urllib.request.urlopen("http://127.0.0.1:9100/hook", b'{"shipped": 17}', timeout=60) as reply:
            reply.read()
        time.sleep(0.5)


for n in range(20):
    threading.Thread(target=sender, args=(n,)).start()
