"""Puts an order into the spool for every request, and waits until its label is printed."""
import itertools
import os
import queue
import socket
import threading

import web

waiting, number = {}, itertools.count()
done = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
done.bind("done")


def labels():
    while True:
        waiting.pop(done.recv(64).decode()).put(None)


def work():
    name, printed = str(next(number)), queue.SimpleQueue()
    waiting[name] = printed
    os.close(os.open("spool/" + name, os.O_CREAT | os.O_WRONLY))
    printed.get()
    return b"printed\n"


threading.Thread(target=labels, daemon=True).start()
web.serve(8000, work)
