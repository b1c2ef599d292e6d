"""A shop's pages, and the price service that they ask by HTTP, which takes a while for each."""
import os
import time
import urllib.request

PRICES = "http://127.0.0.1:%s/price" % os.environ["PRICES"]


def application(environ, start_response):
    if environ["PATH_INFO"] == "/price":
        time.sleep(float(os.environ["TAKES"]))
        start_response("200 OK", [("Content-Length", "8")])
        return [b"12 euro\n"]
    with urllib.request.urlopen(PRICES) as reply:
        body = reply.read()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
