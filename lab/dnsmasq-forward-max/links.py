"""Checks for every request whether some site is there: asks for its name."""
import itertools
import socket

import web

number = itertools.count()


def work():
    return socket.gethostbyname("site%d.example.com" % next(number)).encode()


web.serve(8000, work)
