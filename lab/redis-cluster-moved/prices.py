"""Shows eight prices out of a Redis Cluster; prices.py yes|no: whether the client remembers which node it was sent to."""
import random
import sys
import threading

import resp
import web

remember = sys.argv[1] == "yes"
kept = threading.local()


def price(n):
    if not hasattr(kept, "node"):
        kept.node = resp.Node("10.77.0.1", 7001)
    try:
        return kept.node.ask("GET", "{price}:%d" % n)
    except RuntimeError as e:
        moved, _, where = str(e).split()
        if moved != "MOVED":
            raise
    right = resp.Node(*where.split(":"))
    value = right.ask("GET", "{price}:%d" % n)
    if remember:
        kept.node.close()
        kept.node = right
    else:
        right.close()
    return value


def work():
    return b" ".join(price(random.randrange(1000)) for _ in range(8)) + b"\n"


web.serve(8000, work)
