"""Has a ticket checked for each request; asks again when there was no answer for a second."""
import itertools
import socket
import threading

import web

numbers = itertools.count(1)
kept = threading.local()


def work():
    if not hasattr(kept, "office"):
        kept.office = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        kept.office.connect(("10.77.0.1", 7300))
        kept.office.settimeout(1)
    ticket = b"%d" % next(numbers)
    for _ in range(10):
        try:
            kept.office.send(ticket)
            while True:
                answer = kept.office.recv(512)
                if answer == ticket + b" good":
                    return b"open\n"
        except TimeoutError:
            pass
    raise OSError("the office does not answer")


web.serve(8000, work)
