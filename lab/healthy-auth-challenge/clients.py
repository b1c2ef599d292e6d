"""Ten clients fetch a package ten times a second each: without a password first, then with it. clients.py HOST SECONDS; says how it went."""
import base64
import http.client
import sys
import threading
import time

WORD = {"Authorization": "Basic " + base64.b64encode(b"ci:open sesame").decode()}
ends = time.monotonic() + float(sys.argv[2])
took, failed = [], []


def get(c, headers):
    c.request("GET", "/package.tgz", headers=headers)
    reply = c.getresponse()
    reply.read()
    return reply.status


def client(n):
    c = http.client.HTTPConnection(sys.argv[1], 80)
    due = time.monotonic() + n / 100
    while due < ends:
        time.sleep(max(0, due - time.monotonic()))
        began = time.monotonic()
        if get(c, {}) != 401 or get(c, WORD) != 200:
            failed.append(n)
        took.append(time.monotonic() - began)
        due += 0.1


threads = [threading.Thread(target=client, args=(n,)) for n in range(10)]
for t in threads:
    t.start()
for t in threads:
    t.join()
took.sort()
print("%d packages, %d failed, p50 %.1f ms, p99 %.1f ms" % (len(took), len(failed), took[len(took) // 2] * 1e3, took[len(took) * 99 // 100] * 1e3))
