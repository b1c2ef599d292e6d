"""Fetches an offer from the partner for each request, through the proxy, on a connection that each thread keeps."""
import http.client
import random
import threading

import web

kept = threading.local()


def work():
    if not hasattr(kept, "proxy"):
        kept.proxy = http.client.HTTPConnection("127.0.0.1", 3128, timeout=10)
    try:
        kept.proxy.request("GET", f"http://10.77.0.1:9000/offer/{random.randrange(10**9)}")
        reply = kept.proxy.getresponse()
        body = reply.read()
    except http.client.HTTPException as e:
        kept.proxy.close()
        raise RuntimeError(f"the proxy: {e}") from e
    if reply.status != 200:
        raise RuntimeError(f"the proxy says {reply.status}")
    return body


web.serve(8000, work)
