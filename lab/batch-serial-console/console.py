"""A serial console of 115,200 baud: console.py ARGS... runs tar with these at a terminal, again and again, and shows what it prints at 11,520 bytes a second."""
import os
import pty
import subprocess
import sys
import threading
import time

master, terminal = pty.openpty()


def show():
    while True:
        os.read(master, 115)
        time.sleep(0.01)


threading.Thread(target=show, daemon=True).start()
while True:
    began = time.monotonic()
    subprocess.run(["tar", *sys.argv[1:]], stdout=terminal, stderr=terminal, stdin=subprocess.DEVNULL, check=False)
    print(f"{time.monotonic() - began:.2f} s for an archive of 600 files", flush=True)
