"""report.py yes|no: counts the lines of a log by visitor, with names or without; says every second how many it has done."""
import socket
import sys
import time

names = sys.argv[1] == "yes"
began = last = time.monotonic()
count, lines = {}, 0
while True:
    for n in range(100000):
        line = f"192.0.2.{n * 37 % 251} - - [27/Nov/2026:04:00:{n % 60:02}] \"GET /article/{n} HTTP/1.1\" 200 {n % 9000}"
        visitor = line.split()[0]
        if names:
            try:
                visitor = socket.gethostbyaddr(visitor)[0]
            except OSError:
                pass
        count[visitor] = count.get(visitor, 0) + 1
        lines += 1
        now = time.monotonic()
        if now - last >= 1:
            print(f"{lines} lines in {now - began:.1f} s", flush=True)
            last = now
