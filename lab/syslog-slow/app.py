"""Logs a line for each request, then answers."""
import pathlib
import socket
import time

import web

while not pathlib.Path("log").exists():
    time.sleep(0.01)
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.connect("log")


def work():
    log.send(b"<14>app: a request was served")
    return b"ok\n"


web.serve(8000, work)
