"""Shows an article, with what the stock service says."""
import http.client
import threading

import web

kept = threading.local()


def work():
    if not hasattr(kept, "stock"):
        kept.stock = http.client.HTTPConnection("127.0.0.1", 8100, timeout=10)
    kept.stock.request("GET", "/article/17")
    reply = kept.stock.getresponse()
    body = reply.read()
    if reply.status != 200:
        raise RuntimeError(f"stock: {reply.status}")
    return body


web.serve(8000, work)
