#!/bin/sh
# How often are two equal runs called better? Makes N+1 runs of the same load on a
# service that nobody touches, compares each with the one before, and counts: at
# 95 % at most one in twenty may be "better", in each measure. With -o the runs are
# kept in DIR, and those that are there from earlier calls count too, so that the
# work can be done in slices (and with an N of 0 only counted).
#
#   bench/equal.sh [-o DIR] URL [N] [plimsoll run's flags]
#
# A run needs a hold of two whole seconds or more (-d), else no answer is known.
set -eu
if [ "${1:-}" = -o ]; then
	dir=$2; shift 2
	mkdir -p "$dir"
else
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
fi
url=$1; shift
n=50
case ${1:-} in [0-9]*) n=$1; shift ;; esac
plimsoll=${PLIMSOLL:-bin/plimsoll}
if [ "$n" -gt 0 ]; then
	"$plimsoll" run "$url" --repeat $((n + 1)) --dir "$dir/$(date -u +%Y%m%dT%H%M%S)" "$@" >/dev/null
fi
before=
for run in $(ls -d "$dir"/*/* | sort -V); do
	if [ -n "$before" ]; then
		"$plimsoll" compare "$before" "$run" --json 2>/dev/null || true
	fi
	before=$run
done | python3 -c '
import json, sys
text, at, decoder = sys.stdin.read(), 0, json.JSONDecoder()
names, count, apart, pairs = [], {}, {}, 0
while text[at:].strip():
    at = len(text) - len(text[at:].lstrip())
    found, at = decoder.raw_decode(text, at)
    pairs += 1
    for d in found["comparisons"][0]["differences"]:
        name = d["name"]
        if name not in names:
            names.append(name)
        count[name, d["answer"]] = count.get((name, d["answer"]), 0) + 1
        if d["a"] > 0 and d["b"] > 0:
            apart.setdefault(name, []).append(abs(d["b"] / d["a"] - 1))
bad = pairs == 0
for name in names:
    better, worse, unknown = (count.get((name, w), 0) for w in ("better", "worse", "not known"))
    far = sorted(apart.get(name, [0]))
    print("%-12s better in %d of %d, worse in %d, not known in %d; half of the pairs lie within %.1f %%, all within %.1f %%"
          % (name, better, pairs, worse, unknown, 100 * far[len(far) // 2], 100 * far[-1]))
    bad = bad or better > pairs / 20 or unknown == pairs
sys.exit(1 if bad else 0)'
