"""Asks the partner for a price for each request, by way of the egress proxy, as all that leaves this network has to."""
import http.client

import web


def work():
    proxy = http.client.HTTPConnection("127.0.0.1", 8888, timeout=30)
    proxy.request("GET", "http://127.0.0.1:9000/price")
    reply = proxy.getresponse()
    body = reply.read()
    proxy.close()
    if reply.status != 200:
        raise RuntimeError(f"the partner: {reply.status}")
    return body


web.serve(8000, work)
