"""rows.py N: writes rows into Redis, N commands at a time; says every second how many there are."""
import socket
import sys
import time

at_once = int(sys.argv[1])
redis = socket.create_connection(("10.77.0.1", 6379))
redis.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
began = last = time.monotonic()
rows = 0
while True:
    redis.sendall(b"".join(b"SET row:%d value-of-row-%d\r\n" % (n % 5000, n) for n in range(rows, rows + at_once)))
    want = 5 * at_once  # +OK\r\n
    while want > 0:
        got = redis.recv(65536)
        if not got:
            sys.exit("Redis closed the connection")
        want -= len(got)
    rows += at_once
    now = time.monotonic()
    if now - last >= 1:
        print(f"{rows} rows in {now - began:.1f} s", flush=True)
        last = now
