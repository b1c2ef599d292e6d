"""events.py READS: adds up what was sold in each hour, from lines of a log; reads times by a pattern, or as ISO dates."""
import sys
import time
from collections import Counter
from datetime import datetime

LINES = [f"2026-11-{1 + n % 28:02d}T{n % 24:02d}:{n % 60:02d}:{n * 7 % 60:02d};lamp-{n % 300};{n % 5}" for n in range(20000)]


def when(text):
    if sys.argv[1] == "pattern":
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S")
    return datetime.fromisoformat(text)


def add_up(lines):
    sold = Counter()
    for line in lines:
        at, _, pieces = line.split(";")
        sold[when(at).hour] += int(pieces)
    return sold


while True:
    began = time.monotonic()
    add_up(LINES)
    print(f"{len(LINES) / (time.monotonic() - began):.0f} lines a second", flush=True)
