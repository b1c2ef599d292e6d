"""Quick pages, and one in ten that is a statement of account and takes four seconds of waiting."""
import random
import time

RATES = {i: str(i * i) for i in range(200_000)}


def application(environ, start_response):
    time.sleep(4 if random.randrange(10) == 0 else 0.01)
    body = RATES[len(RATES) // 2].encode()
    start_response("200 OK", [("Content-Length", str(len(body))), ("Connection", "close")])
    return [body]
