"""Writes what a request did into the audit log, line by line, and never asks for a sync."""
import os
import sys

import web

log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def work():
    for n in range(20):
        os.write(log, b"step %d of an order, as the auditors want it\n" % n)
    if os.fstat(log).st_size > 16 << 20:
        os.ftruncate(log, 0)  # rotated
    return b"done\n"


web.serve(8000, work)
