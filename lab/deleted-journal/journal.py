"""The journal of the uploads: journal.py MEGABYTES yes|no. It has written so much; then the night deletes the file, and the journal is told of it, or not."""
import os
import sys
import time

megabytes, told = int(sys.argv[1]), sys.argv[2]
journal = open("uploads/journal.log", "wb", buffering=0)
for _ in range(megabytes * 16):
    try:
        journal.write(b"stored\n" * 9362)
    except OSError as e:
        print(e, flush=True)
        break
os.unlink("uploads/journal.log")
if told == "yes":
    journal.close()
    journal = open("uploads/journal.log", "wb", buffering=0)
open("rotated", "w").close()
while True:
    try:
        journal.write(b"still here\n")
    except OSError as e:
        print(e, flush=True)
    time.sleep(1)
