"""Sits at a shell: types a command each second, and shows at once what the terminal prints."""
import os
import pty
import threading
import time

pid, terminal = pty.fork()
if pid == 0:
    os.execv("/bin/sh", ["sh", "-i"])


def show():
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:  # the shell has ended
        pass


threading.Thread(target=show, daemon=True).start()
while True:
    os.write(terminal, b"seq 1000\n")
    time.sleep(1)
