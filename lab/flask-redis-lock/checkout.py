"""The shop's checkout: takes an article from the stock under a lock in Redis, so that none is sold twice."""
import random
import urllib.request

import redis
from flask import Flask

app = Flask(__name__)
store = redis.Redis(max_connections=200)


def reserve():
    """Asks the warehouse for a place on its shelf."""
    with urllib.request.urlopen("http://127.0.0.1:9000/reserve") as reply:
        return reply.read()


@app.get("/checkout")
def checkout():
    article = random.randrange(5000)
    with store.lock("{{.lock}}" % {"article": article}, timeout=10):
        store.hincrby("stock", article, -1)
        reserve()
    return {"article": article}
