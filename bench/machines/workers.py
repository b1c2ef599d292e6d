"""workers.py CASE DIR RATE: holds what Plimsoll says of a load from three against the requests that came to the server (workers.sh)."""
import glob
import json
import os
import sys

case, folder, rate = sys.argv[1], sys.argv[2], float(sys.argv[3])
wrong = []


def load(name):
    with open(f"{folder}/{name}.json") as f:
        return json.load(f)["load"]


def names(of):
    """The loads of a kind, by the time at which they began."""
    return sorted(os.path.basename(path)[:-5] for path in glob.glob(f"{folder}/{of}[0-9]*.json"))


def requests(name):
    """When requests came, in seconds, and from which machine, in their order."""
    with open(f"{folder}/{name}.requests") as f:
        return sorted((float(at), int(machine)) for at, machine in map(str.split, f))


def begins(came, machines):
    """When each machine's first request came, less what its place in the schedule puts it behind the first machine's."""
    return [next(at for at, m in came if m == k) - (k - 1) / rate for k in range(1, machines + 1)]


def exact(name, seconds):
    """Every request was counted, by the whole and by its worker, and there were as many as the schedule has."""
    said, came = load(name), requests(name)
    each = [sum(m == k + 1 for _, m in came) for k in range(len(said["workers"]))]
    if not said["requests"] == len(came) == rate * seconds or [w["requests"] for w in said["workers"]] != each:
        wrong.append(f"{name}: {said['requests']} requests are told, of workers {[w['requests'] for w in said['workers']]}; {len(came)} came, {each}")
    return said, came


def starts():
    apart, late, off, clocks = [], [], [], 0
    for name in names("starts"):
        said, came = exact(name, 1)
        first = begins(came, 3)
        apart.append(1e3 * (max(first) - min(first)))
        for w in said["workers"]:
            late.append(w["late_ms"])
            clocks += abs(w["clock"]["offset_ms"]) <= w["clock"]["uncertainty_ms"]  # there is one clock, so 0 is true
            off.append(w["clock"]["uncertainty_ms"])
    apart.sort()
    if apart[-1] > 5:
        wrong.append("they began more than 5 ms apart")
    if clocks != len(off):
        wrong.append("a clock was not as it was said")
    print(f"first requests {apart[len(apart) // 2]:.2f} ms apart (median of {len(apart)}), {apart[-1]:.2f} ms at most; told to be late by {max(late):.2f} ms at most; "
          f"the true difference of the clocks was within the error that was told in {clocks} of {len(off)}, which was {max(off):.2f} ms at most", end="")


def equal():
    worst = {}
    for of, machines in ("one", 1), ("three", 3):
        for name in names(of):
            _, came = exact(name, 15)
            began = min(begins(came, machines))
            behind = sorted(at - began - k / rate for k, (at, _) in enumerate(came))
            worst.setdefault(of, []).append(1e3 * behind[len(behind) * 99 // 100])
    print(f"{len(worst['one'])} and {len(worst['three'])} runs of {rate * 15:.0f} requests, each counted; 99 in 100 came within "
          f"{max(worst['one']):.2f} ms of their time from one, {max(worst['three']):.2f} ms from three", end="")


def killed():
    said, came = load("killed"), requests("killed")
    gone = said["workers"][1]
    until = gone["gone_ms"] / 1e3
    told = [sum(m == 2 and at < until + more for at, m in came) for more in (-0.002, 0.002)]
    others = [sum(m == k for _, m in came) for k in (1, 3)]
    if not told[0] <= gone["requests"] <= told[1]:
        wrong.append("these are not the same")
    if others != [said["workers"][0]["requests"], said["workers"][2]["requests"]] or others != [rate * 10 / 3] * 2:
        wrong.append(f"of the others {others} came, and {[w['requests'] for w in said['workers']]} are told")
    if said["requests"] != sum(w["requests"] for w in said["workers"]):
        wrong.append("the whole is not the sum")
    print(f"{gone['requests']} requests of the killed one count, and {told[1]} had come by the second in which it was last heard; of the others {others}, all counted", end="")


{"starts": starts, "equal": equal, "killed": killed}[case]()
print("".join("; " + text for text in wrong))
sys.exit(bool(wrong))
