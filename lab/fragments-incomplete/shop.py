"""Asks the stock for every request, by UDP: three times, 300 ms each."""
import itertools
import socket
import threading

import web

kept, number = threading.local(), itertools.count()


def work():
    if not hasattr(kept, "s"):
        kept.s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        kept.s.connect(("10.77.0.1", 9000))
        kept.s.settimeout(0.3)
    question = b"%012d" % next(number)
    for _ in range(3):
        kept.s.send(question)
        try:
            while not kept.s.recv(8192).startswith(question):
                pass
            return b"in stock\n"
        except TimeoutError:
            pass
    raise RuntimeError("the stock does not answer")


web.serve(8000, work)
