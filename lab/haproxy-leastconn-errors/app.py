"""Shows a price, which takes 20 ms, from a file: app.py PORT FILE."""
import sys
import time

import web


def work():
    with open(sys.argv[2], "rb") as f:
        price = f.read()
    time.sleep(0.02)
    return price


web.serve(int(sys.argv[1]), work)
