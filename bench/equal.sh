#!/bin/sh
# How often are two equal runs called better? Makes N+1 runs of the same load on a
# service that nobody touches, compares each with the one before, and counts: at
# 95 % at most one in twenty may be "better", in each measure.
#
#   bench/equal.sh URL [N] [plimsoll run's flags]
set -eu
url=$1; shift
n=50
case ${1:-} in [0-9]*) n=$1; shift ;; esac
plimsoll=${PLIMSOLL:-bin/plimsoll}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$plimsoll" run "$url" --repeat $((n + 1)) --dir "$dir" "$@" >/dev/null
i=1
while [ $i -le "$n" ]; do
	"$plimsoll" compare "$dir/$i" "$dir/$((i + 1))" --json 2>/dev/null || true
	i=$((i + 1))
done | python3 -c '
import json, sys
text, at, decoder = sys.stdin.read(), 0, json.JSONDecoder()
better, worse, pairs = {}, {}, 0
while text[at:].strip():
    found, end = decoder.raw_decode(text[at:].lstrip())
    at = len(text) - len(text[at:].lstrip()) + end
    pairs += 1
    for d in found[0]["differences"]:
        better[d["name"]] = better.get(d["name"], 0) + (d["answer"] == "better")
        worse[d["name"]] = worse.get(d["name"], 0) + (d["answer"] == "worse")
bad = False
for name in better:
    print("%-12s better in %d of %d, worse in %d" % (name, better[name], pairs, worse[name]))
    bad = bad or better[name] > pairs / 20
sys.exit(1 if bad else 0)'
