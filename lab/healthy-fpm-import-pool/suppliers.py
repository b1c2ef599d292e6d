"""Six suppliers' systems, which hand in a price list through the internal port, again and again, as soon as the last one was taken."""
import threading
import time
import urllib.request


def supplier():
    while True:
        with urllib.request.urlopen("http://127.0.0.1:8082/import.php") as reply:
            reply.read()
        time.sleep(0.1)


for _ in range(6):
    threading.Thread(target=supplier).start()
