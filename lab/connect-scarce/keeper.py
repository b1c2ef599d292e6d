"""Keeps idle connections to redis open, as a pool without an upper bound does.

usage: keeper.py COUNT; listens on 127.0.0.1:7000 once all of them stand.
"""

import resource
import signal
import socket
import sys

count = int(sys.argv[1])
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
kept = [socket.create_connection(("127.0.0.1", 6379)) for _ in range(count)]
ready = socket.create_server(("127.0.0.1", 7000))
signal.pause()
