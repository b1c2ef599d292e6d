"""Shows a picture of the renderer on 127.0.0.1:8100; logs in anew for each."""
import socket

import web


def work():
    with socket.create_connection(("127.0.0.1", 8100)) as c, c.makefile("rb") as f:
        c.sendall(b"pages\n")
        f.readline()
        c.sendall(b"picture\n")
        return f.readline()


web.serve(8000, work)
