"""check.py FOLDER N: checks the records in the folder, round after round, and writes after each N how far it is; prints every second how many there were."""
import hashlib
import sys
import time

folder, each = sys.argv[1], int(sys.argv[2])
done, said, then = 0, 0, time.monotonic()
while True:
    with open(folder + "/records", "rb") as records:
        while record := records.read(512):
            hashlib.sha256(record).digest()
            done += 1
            if done % each == 0:
                with open(folder + "/progress", "w") as progress:
                    progress.write(f"{done}\n")
            if time.monotonic() - then >= 1:
                print(f"{done - said} records", flush=True)
                said, then = done, time.monotonic()
