"""Files receipts of 2 KB: receipts.py all|file DIRECTORY. After each it calls sync(), or fsync() for that file alone."""
import os
import sys
import time

how, folder = sys.argv[1], sys.argv[2]
began, filed = time.monotonic(), 0
for n in range(1 << 60):
    with open(f"{folder}/receipt-{n % 200}", "wb") as f:
        f.write(b"r" * 2048)
        f.flush()
        if how == "file":
            os.fdatasync(f.fileno())
    if how == "all":
        os.sync()
    filed += 1
    if time.monotonic() - began > 2:
        print(f"{filed / (time.monotonic() - began):.1f} receipts/s", flush=True)
        began, filed = time.monotonic(), 0
