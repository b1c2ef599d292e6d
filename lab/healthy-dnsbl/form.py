"""Takes a form for each request, unless the visitor's address is on the list of bl.example."""
import random
import socket

import web


def work():
    name = f"{random.randrange(100)}.0.0.10.bl.example."
    try:
        socket.getaddrinfo(name, None, socket.AF_INET)
    except socket.gaierror as e:
        if e.errno != socket.EAI_NONAME:
            raise OSError(f"look-up of {name}: {e}") from e
        return b"thank you\n"
    return b"no, thank you\n"


web.serve(8000, work)
