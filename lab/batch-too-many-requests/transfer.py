"""Hands orders to the partner: transfer.py ORDERS, how many go into one call."""
import http.client
import json
import sys
import time

orders = int(sys.argv[1])
partner = http.client.HTTPConnection("10.77.0.1", 8100)
began, sent = time.monotonic(), 0
while True:
    partner.request("POST", "/orders", json.dumps([{"article": i, "pieces": 1} for i in range(orders)]))
    reply = partner.getresponse()
    reply.read()
    if reply.status == 429:
        time.sleep(int(reply.headers["Retry-After"]))
    else:
        sent += orders
    if time.monotonic() - began > 2:
        print(f"{sent / (time.monotonic() - began):.1f} orders/s", flush=True)
        began, sent = time.monotonic(), 0
