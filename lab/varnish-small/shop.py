"""A page of the catalogue: 30 KB, after 40 ms."""
import time

import web

BODY = b"<p>All about this article.</p>\n" * 1000


def work():
    time.sleep(0.04)
    return BODY


web.serve(8001, work)
