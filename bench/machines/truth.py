"""truth.py CASE RUN: holds what a run (run.sh) says against the truth of its case; ends with 1 where it is another."""
import json
import sys

case, run = sys.argv[1], sys.argv[2]
# The roots in their order, each with the machine that has it; of a walk those of its steps.
roots = {
    "quota": [("cgroup.cpu_throttled", "app")],
    "conntrack": [("net.conntrack.table_full", "web")],
    "loss": [("net.packet_loss", "app")],
    "postgres": [("postgres.connections.exhausted", "db")],
    "lock": [("postgres.lock_waits", "db")],
    "healthy": [],
    "chain": [("net.conntrack.table_full", "web"), ("net.time_wait.no_reuse", "web"), ("phpfpm.workers.exhausted", "app"), ("net.ports.exhausted", "web"), ("app.slow_upstream", "app")],
}
hour = 3600_000  # ms


def of(finding):
    return finding["rule"], finding["subject"].get("host")


def watched(run):
    """What is wrong with a run that only watched, "" for nothing."""
    collectors = {c["hosts"][0]: c for c in run["collectors"]}
    if sorted(collectors) != ["app", "web"]:
        return f"observed were {sorted(collectors)}"
    for name, c in collectors.items():
        ahead = hour if case == "clock" and name == "app" else 0
        for t in c["clock"]:
            if abs(t["offset_ms"] - ahead) > t["uncertainty_ms"] + 2000:  # by when it was booted, a second or two
                return f"{name} is told to be {t['offset_ms']} ms ahead"
            if case == "far" and not 80 < t["uncertainty_ms"] < 400:  # half of the way there and back
                return f"over 200 ms {name}'s clock is told to be known to {t['uncertainty_ms']} ms"
        if c.get("cut") or c.get("dropped_samples"):
            return f"{name} was not seen all the time"
    if case == "clock" and not any("clock was set" in note for note in run.get("notes") or []):
        return "that a clock was set is not told"
    return ""


if case in ("clock", "far", "old"):
    wrong = watched(json.load(open(run + "/run.json")))
    print(f"truth: {case}: {'WRONG: ' + wrong if wrong else 'as it is'}")
    sys.exit(wrong != "")
if case == "chain":
    said = [of(step["root"]) for step in json.load(open(run + "/tuning.json"))["steps"] if step.get("root")]
    answer = "cause"
else:
    verdict = json.load(open(run + "/verdict.json"))["verdict"]
    said, answer = [of(finding) for finding in verdict.get("root") or []], verdict["answer"]
right = said == roots[case] and answer == ("cause" if roots[case] else "healthy")
print(f"truth: {case}: {answer} {said}: {'right' if right else 'WRONG, want ' + str(roots[case])}")
sys.exit(not right)
