"""Asks a partner for every request."""
import urllib.request


def application(environ, start_response):
    with urllib.request.urlopen("http://127.0.0.1:8100/") as reply:
        body = reply.read()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
