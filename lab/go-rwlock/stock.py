"""The stock: most articles are at hand, one in a hundred has to be asked for elsewhere."""
import random
import time

import web


def work():
    time.sleep(0.5 if random.randrange(100) == 0 else 0.005)
    return b"17\n"


web.serve(8100, work)
