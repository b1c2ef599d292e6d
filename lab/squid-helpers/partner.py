"""A partner on another host: answers after 5 ms, on connections that it keeps."""
import time

import web


def work():
    time.sleep(0.005)
    return b'{"offer": "lamp", "price": 1299}\n'


web.serve(9000, work)
