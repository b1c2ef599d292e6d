"""A page, by a service that ends itself after so many requests; 0: never."""
import itertools
import os
import sys

import web

guard = int(sys.argv[1])
served = itertools.count(1)


def page():
    if guard and next(served) > guard:
        os._exit(3)
    return b"Good morning!\n"


web.serve(8000, page)
