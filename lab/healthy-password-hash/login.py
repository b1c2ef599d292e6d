"""Checks a password for every request, as slowly as it has to be."""
import hashlib

import web

KEPT = hashlib.scrypt(b"correct horse", salt=b"0123456789abcdef", n=8192, r=8, p=1)


def work():
    return b"welcome\n" if hashlib.scrypt(b"correct horse", salt=b"0123456789abcdef", n=8192, r=8, p=1) == KEPT else b"no\n"


web.serve(8000, work)
