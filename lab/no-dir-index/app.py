"""Spools a message for every request, and takes one away. app.py fill: the old messages that nobody takes."""
import itertools
import os
import sys

import web

SPOOL = "spool/messages"
numbers = itertools.count()


def write(name):
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def work():
    name = f"{SPOOL}/message-{next(numbers):08}-for-the-branch-office-in-the-north"
    write(name)
    os.rename(name, name + ".ready")
    os.unlink(name + ".ready")
    return b"spooled\n"


if sys.argv[1] == "fill":
    os.mkdir(SPOOL)
    for n in range(60000):
        write(f"{SPOOL}/message-{n:08}-for-a-branch-office-that-was-closed-last-year")
else:
    web.serve(8000, work)
