"""Has pictures converted, four at a time: job.py PIPE|FILE, where the converter's errors go."""
import subprocess
import sys
import threading
import time

done = [0] * 4


def convert(i):
    while True:
        with open(f"errors{i}", "w") as file:
            errors = subprocess.PIPE if sys.argv[1] == "PIPE" else file
            converter = subprocess.Popen([sys.executable, "-S", "convert.py"], stderr=errors)
            if converter.wait() != 0 and errors == subprocess.PIPE:
                print(converter.stderr.read(), flush=True)
        done[i] += 1


for i in range(4):
    threading.Thread(target=convert, args=(i,), daemon=True).start()
while True:
    before = sum(done)
    time.sleep(2)
    print(f"{(sum(done) - before) / 2} pictures/s", flush=True)
