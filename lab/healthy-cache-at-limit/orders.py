"""orders.py FILE: takes orders and notes each in a journal, which has some hundred megabytes already."""
import os
import sys

import web

LINE = b"order: " + b"x" * 4088 + b"\n"
journal = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
for _ in range(150):
    os.write(journal, LINE * 256)
os.fsync(journal)


def work():
    os.write(journal, LINE)
    return b"noted\n"


web.serve(8000, work)
