"""Takes the lock, imports for a moment, ends; or asks a server that never answers, with the lock in hand."""
import fcntl
import socket
import sys
import time

lock = open("import.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
if sys.argv[2] == "yes":
    silent = socket.create_server(("127.0.0.1", 8999))
    socket.create_connection(("127.0.0.1", 8999)).recv(1)
time.sleep(0.05)
print(f"import done at {time.monotonic():.1f}", flush=True)
