"""A shop's pages, and the price service that they ask by HTTP, in one application."""
import os
import urllib.request

PRICES = "http://127.0.0.1:%s/price" % os.environ["PRICES"]


def application(environ, start_response):
    if environ["PATH_INFO"] == "/price":
        start_response("200 OK", [("Content-Length", "8")])
        return [b"12 euro\n"]
    try:
        with urllib.request.urlopen(PRICES, timeout=2) as reply:
            status, body = "200 OK", reply.read()
    except OSError as e:
        status, body = "503 Service Unavailable", str(e).encode()
    start_response(status, [("Content-Length", str(len(body)))])
    return [body]
