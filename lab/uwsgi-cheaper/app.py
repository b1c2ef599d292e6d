"""A page that waits 20 ms for somebody else."""
import time


def application(environ, start_response):
    time.sleep(0.02)
    start_response("200 OK", [("Content-Length", "3"), ("Connection", "close")])
    return [b"ok\n"]
