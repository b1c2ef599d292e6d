"""A queue runner that starts a program for each job, and asks how it ended or does not.

usage: jobs.py yes|no: whether it waits for its jobs.
"""

import signal
import subprocess
import sys
import time


def end(*_):
    for job in jobs:  # no zombies are left to the machine's init
        job.wait()
    sys.exit(0)


waits = sys.argv[1] == "yes"
jobs = []
signal.signal(signal.SIGTERM, end)
while True:
    try:
        jobs.append(subprocess.Popen(["true"]))
    except BlockingIOError:
        pass  # no more processes for this user: it will be tried again
    if waits:
        jobs.pop().wait()
    time.sleep(0.005)
