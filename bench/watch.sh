#!/bin/bash
# What does watching cost?
#
#   bench/watch.sh [-r ROUNDS] [-d SECONDS] [-i INTERVAL] [-p PROCESSES] [-s SOCKETS] [PLIMSOLL]
#
# Watches a network namespace of its own with so many sleeping processes (300)
# and TCP sockets (3,000, pairs over its lo), and prints what the report's
# "cost" says of each round (3 of 20 s) and the median. With the settings above
# and an interval of 1 s it ends with 1 when the median is above 3 % of one core
# or 60 MiB. It needs root, go, ip and jq, and a machine that does little else:
# what else runs on it is scanned, too, to find the processes of the namespace.
set -euo pipefail

rounds=3 seconds=20 interval=1s processes=300 sockets=3000
while getopts r:d:i:p:s: option; do
	case $option in
	r) rounds=$OPTARG ;;
	d) seconds=$OPTARG ;;
	i) interval=$OPTARG ;;
	p) processes=$OPTARG ;;
	s) sockets=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
plimsoll=${1:-bin/plimsoll}
for tool in go ip jq "$plimsoll"; do
	command -v "$tool" >/dev/null || { echo "watch.sh: $tool is not here: install or build it" >&2; exit 1; }
done

dir=$(mktemp -d)
host=plimsoll-bench-$$
finish() {
	exec 4>&- || true # socketpairs ends with its input
	# All of them are ours: nobody else knows the namespace.
	ip netns pids "$host" 2>/dev/null | xargs -r kill || true
	wait || true
	ip netns delete "$host" 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM

CGO_ENABLED=0 go build -o "$dir/socketpairs" "$(dirname "$0")/testdata/socketpairs.go"
ip netns add "$host"
ip -n "$host" link set lo up

mkfifo "$dir/in"
exec 4<>"$dir/in"
ip netns exec "$host" "$dir/socketpairs" $((sockets / 2)) <"$dir/in" >"$dir/ready" 4>&- &
pairs=$!
ip netns exec "$host" bash -c "for _ in \$(seq $processes); do sleep 100000 & done; wait" 4>&- &
until grep -q ready "$dir/ready" && [ "$(ip netns pids "$host" | wc -l)" -ge "$processes" ]; do
	kill -0 $pairs 2>/dev/null || exit 1 # it has said why
	sleep 0.1
done

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "$(ip netns pids "$host" | wc -l) processes, $(ip netns exec "$host" ss -tanH | wc -l) TCP sockets; on the whole machine $(ls -d /proc/[0-9]* | wc -l) processes; interval $interval"
for ((round = 1; round <= rounds; round++)); do
	"$plimsoll" watch -d "${seconds}s" --interval "$interval" --host "srv=netns:$host" --dir "$dir/run$round" --json >"$dir/report$round"
	jq -r '.cost | "\(.cpu_share_of_one_core * 100) \(.max_rss_bytes / 1048576)"' "$dir/report$round" >>"$dir/cost"
	tail -n 1 "$dir/cost" | xargs printf 'round %s: %.2f %% of one core, at most %.1f MiB\n' "$round"
done
jq -r '.notes[]' "$dir"/report* | sort | uniq -c
cpu=$(awk '{ print $1 }' "$dir/cost" | median)
rss=$(awk '{ print $2 }' "$dir/cost" | median)
printf 'median: %.2f %% of one core (limit 3 %%), at most %.1f MiB (limit 60 MiB)\n' "$cpu" "$rss"
[ "$interval" != 1s ] || awk -v cpu="$cpu" -v rss="$rss" 'BEGIN { exit cpu > 3 || rss > 60 }'
