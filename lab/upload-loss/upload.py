"""upload.py USERS: so many users upload a picture of 1 MB every half a second, if they can; says every second how many there were."""
import http.client
import sys
import threading
import time

picture = bytes(1 << 20)
done = []


def user():
    while True:
        try:
            c = http.client.HTTPConnection("10.77.0.2", 8000, timeout=60)
            while True:
                began = time.monotonic()
                c.request("POST", "/", picture)
                c.getresponse().read()
                done.append(time.monotonic() - began)
                time.sleep(max(0, 0.5 - done[-1]))
        except OSError:
            time.sleep(0.1)


for _ in range(int(sys.argv[1])):
    threading.Thread(target=user, daemon=True).start()
while True:
    time.sleep(1)
    waits, done = sorted(done), []
    if waits:
        print(f"{len(waits)} uploads, half of them within {waits[len(waits) // 2] * 1000:.0f} ms", flush=True)
