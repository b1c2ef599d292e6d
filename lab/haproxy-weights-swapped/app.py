"""Puts offers together, each in 20 ms, so many at a time as it has places: app.py PORT PLACES."""
import sys
import threading
import time

import web

places = threading.Semaphore(int(sys.argv[2]))


def work():
    with places:
        time.sleep(0.02)
        return b"offer\n"


web.serve(int(sys.argv[1]), work)
