"""Articles; one in fifty has a fault in its data, and the application answers 500."""
import random
import sys
import time

import web


def work():
    time.sleep(0.003)
    if random.randrange(50) == 0:
        raise RuntimeError("article: no price")
    return b"an article\n"


web.serve(int(sys.argv[1]), work)
