"""A client with a pool of connections and pauses in between: each of
CONNECTIONS sends a request, waits half a second to two and a half, and sends the next one
on the same connection, for SECONDS. It looks at a connection only when it wants
something from it, as many libraries do. Prints what it got and lost."""
import random
import socket
import sys
import time

host, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
connections, seconds = int(sys.argv[4]), float(sys.argv[5])
request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
good = lost = 0
end = time.monotonic() + seconds
due = [(time.monotonic() + random.uniform(0, 2), None) for _ in range(connections)]


def exchange(conn):
    """One request on a connection; None when it is of no use any more."""
    global good, lost
    try:
        if conn is None:
            conn = socket.create_connection((host, port), timeout=2)
            conn.settimeout(2)
        conn.sendall(request)
        if conn.recv(4096):
            good += 1
            return conn
    except OSError:
        pass
    lost += 1
    if conn is not None:
        conn.close()
    return None


while time.monotonic() < end:
    due.sort(key=lambda d: d[0])
    at, conn = due.pop(0)
    if at > time.monotonic():
        time.sleep(at - time.monotonic())
    due.append((time.monotonic() + random.uniform(0.5, 2.5), exchange(conn)))
print(f"{good} good, {lost} lost")
