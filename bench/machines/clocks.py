"""clocks.py PLIMSOLL WORK TIMES: sets the clocks of both machines (run.sh) at random, has Plimsoll say how far they are ahead, and holds that
against bounds that 500 packets before and 500 after leave: nobody answers before he was asked."""
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time

plimsoll, work, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
environment = dict(os.environ, PATH=f"{work}/bin:" + os.environ["PATH"])
machines = {"web": "10.79.1.2", "app": "10.79.1.3"}
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(2)


def exchange(machine, said):
    asked = time.time_ns()
    s.sendto(said, (machines[machine], 9123))
    came, left = struct.unpack("!qq", s.recv(64))
    return left - time.time_ns(), came - asked


def bounds(machine):
    """Between which numbers of milliseconds its clock is ahead."""
    each = [exchange(machine, b"?") for _ in range(500)]
    return sorted((max(low for low, _ in each) / 1e6, min(high for _, high in each) / 1e6))


for machine in machines:
    subprocess.run(["ssh", machine, "python3 /mnt/echo.py >/dev/null 2>&1 </dev/null &"], env=environment, check=True)
time.sleep(2)
right, widest, error = 0, 0, 0
for i in range(times):
    for machine in machines:
        exchange(machine, struct.pack("!q", random.randrange(-86400 * 10**9, 86400 * 10**9)))
    before = {machine: bounds(machine) for machine in machines}
    said = subprocess.run([plimsoll, "load", "http://10.79.1.2/?us=0", "-n", "2", "-c", "2", "--json", "--from", "web=ssh:web", "--from", "app=ssh:app"],
                          env=environment, stdout=subprocess.PIPE, check=True).stdout
    for worker in json.loads(said)["load"]["workers"]:
        after = bounds(worker["name"])
        low, high = min(before[worker["name"]][0], after[0]), max(before[worker["name"]][1], after[1])
        offset, u = worker["clock"]["offset_ms"], worker["clock"]["uncertainty_ms"]
        true = low - u <= offset <= high + u
        right, widest, error = right + true, max(widest, high - low), max(error, u)
        print(f"{worker['name']}: told to be {offset:.3f} ms ahead, known to {u:.3f} ms; is {low:.3f} to {high:.3f}: {'right' if true else 'WRONG'}", flush=True)
print(f"{right} of {2 * times} were as they were said to be, known to {error:.2f} ms at most; packets tell it to {widest:.2f} ms at worst")
sys.exit(right != 2 * times)
