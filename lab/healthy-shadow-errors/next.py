"""The next version of the shop: fails at nearly every request, for its database has not been made yet."""
import random

import web


def work():
    if random.random() < 0.95:
        raise RuntimeError('relation "offers_v2" does not exist')
    return b"offers\n"


web.serve(8001, work)
