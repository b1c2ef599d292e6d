"""Product pages: out of memcached, or, where that cannot be had in time, put together anew."""
import socket
import time

CACHE = ("10.77.0.1", 11211)
PAGE = b"product 17\n"


def cached(key):
    try:
        with socket.create_connection(CACHE, timeout=0.25) as c:
            c.sendall(b"get %s\r\n" % key)
            lines = c.recv(65536).split(b"\r\n")
            return lines[1] if lines[0].startswith(b"VALUE") else None
    except OSError:
        return None


def keep(key, page):
    try:
        with socket.create_connection(CACHE, timeout=0.25) as c:
            c.sendall(b"set %s 0 60 %d\r\n%s\r\n" % (key, len(page), page))
            c.recv(64)
    except OSError:
        pass


def app(environ, start_response):
    page = cached(b"product17")
    if page is None:
        time.sleep(0.005)
        page = PAGE
        keep(b"product17", page)
    start_response("200 OK", [("Content-Length", str(len(page)))])
    return [page]
