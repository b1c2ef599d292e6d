"""Prices from a list that is read before the workers are forked."""
import time

PRICES = {"item-%06d" % i: "%d.%02d" % (i % 900, i % 100) for i in range(100_000)}


def application(environ, start_response):
    time.sleep(0.005)
    body = PRICES["item-000123"].encode() + b"\n"
    start_response("200 OK", [("Content-Length", str(len(body))), ("Connection", "close")])
    return [body]
