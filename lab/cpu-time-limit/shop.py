"""Shows a few prices; loads all of them first, which takes one and a half seconds of CPU time."""
import hashlib
import random

PRICES = {n: hashlib.sha256(b"%d" % n).hexdigest() for n in range(1_200_000)}


def application(environ, start_response):
    body = "\n".join(PRICES[random.randrange(1_200_000)] for _ in range(500)).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
