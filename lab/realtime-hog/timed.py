# A time daemon that looks at its clock: all the time, or a hundred times a second.
import sys
import time

spin = sys.argv[1] == "yes"
while True:
    time.monotonic()
    if not spin:
        time.sleep(0.01)
