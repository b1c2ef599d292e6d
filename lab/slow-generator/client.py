"""A load tool as people write it: readable, and one thread.

usage: client.py HOST PORT PATH CONNECTIONS SECONDS PROCESSES

Keeps CONNECTIONS keep-alive connections busy with one request each. With
PROCESSES more than 1 the work is shared by so many copies of it.
"""
import http.client
import io
import json
import os
import selectors
import socket
import sys
import time
from email.utils import parsedate_to_datetime


def whole(reply):
    """Tells whether all of a reply is there, and its status and age."""
    head, end, body = reply.partition(b"\r\n\r\n")
    if not end:
        return False, 0, None
    status, _, fields = head.partition(b"\r\n")
    fields = http.client.parse_headers(io.BytesIO(fields + end))
    age = parsedate_to_datetime(fields["Date"]) - parsedate_to_datetime(fields["Last-Modified"])
    return len(body) >= int(fields["Content-Length"]), int(status.split()[1]), age


def load(host, port, path, connections, seconds):
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    ready = selectors.DefaultSelector()
    for _ in range(connections):
        s = socket.create_connection((host, port))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.sendall(request)
        ready.register(s, selectors.EVENT_READ, bytearray())
    begin = time.monotonic()
    failed = 0
    records = []
    while time.monotonic() < begin + seconds and failed < connections:
        for key, _ in ready.select(0.1):
            part = key.fileobj.recv(65536)
            key.data.extend(part)
            done, status, age = whole(bytes(key.data))
            if not part or (done and status != 200):
                failed += 1
                ready.unregister(key.fileobj)
            elif done:
                records.append(json.dumps({"at": time.time(), "status": status, "age": str(age)}))
                key.data.clear()
                key.fileobj.sendall(request)
    took = time.monotonic() - begin
    print(f"{len(records) / took:.0f} requests/s, {failed} connections failed", flush=True)


def main():
    host, port, path, connections, seconds, processes = sys.argv[1:]
    share = int(connections) // int(processes)
    children = 0
    while children + 1 < int(processes):
        children += 1
        if os.fork() == 0:
            children = 0
            break
    load(host, int(port), path, share, float(seconds))
    for _ in range(children):
        os.wait()


main()
