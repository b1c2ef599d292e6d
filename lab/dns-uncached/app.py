"""Looks up where its partner is for each request, as every connect by name does."""
import socket

import web


def work():
    found = socket.getaddrinfo("stock.partner.example", 80, family=socket.AF_INET, type=socket.SOCK_STREAM)
    return found[0][4][0].encode() + b"\n"


web.serve(8000, work)
