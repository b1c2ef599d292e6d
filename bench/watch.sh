#!/bin/bash
# What does watching cost?
#
#   bench/watch.sh [-r ROUNDS] [-d SECONDS] [-i INTERVAL] [-p PROCESSES] [-s SOCKETS] [-l LEVEL] [-w WAY] [-t] [PLIMSOLL]
#
# Watches a network namespace of its own with so many sleeping processes (1,000)
# and TCP sockets (30,000, pairs over its lo) at a level of tracing (light), and
# prints what the report's "cost" says of each round (3 of 60 s) and the median.
# With -w process/ it is watched by a process of its own; both then count.
# With the settings above and an interval of 1 s it ends with 1 when the median is
# above 3 % of one core or 80 MiB. With -t it prints a table of the medians up to
# 10,000 processes and 200,000 sockets. It needs root, go,
# ip and jq, and a machine that does little else: what else runs on it is looked
# at, too, to find the processes of the namespace.
set -euo pipefail

rounds=3 seconds=60 interval=1s processes=1000 sockets=30000 level=light way= table=
while getopts r:d:i:p:s:l:w:t option; do
	case $option in
	r) rounds=$OPTARG ;;
	d) seconds=$OPTARG ;;
	i) interval=$OPTARG ;;
	p) processes=$OPTARG ;;
	s) sockets=$OPTARG ;;
	l) level=$OPTARG ;;
	w) way=$OPTARG ;;
	t) table=yes ;;
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
there= # whether the namespace is
mkfifo "$dir/in"
CGO_ENABLED=0 go build -o "$dir/socketpairs" "$(dirname "$0")/testdata/socketpairs.go"

leave() {
	[ "$there" ] || return 0
	exec 4>&- || true # socketpairs ends with its input
	# All of them are ours: nobody else knows the namespace.
	ip netns pids "$host" 2>/dev/null | xargs -r kill 2>/dev/null || true
	wait || true
	ip netns delete "$host" 2>/dev/null || true
	there=
}
trap 'leave; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# fill makes the namespace with $1 processes and $2 sockets in it. A process may
# have so many descriptors only, so several of them hold the sockets.
fill() {
	local left=$(($2 / 2)) each=$((($(ulimit -n) - 100) / 2)) n holders=0
	ip netns add "$host"
	there=yes
	ip -n "$host" link set lo up
	exec 4<>"$dir/in"
	: >"$dir/ready"
	while [ $left -gt 0 ]; do
		n=$((left < each ? left : each))
		left=$((left - n)) holders=$((holders + 1))
		ip netns exec "$host" "$dir/socketpairs" $n <"$dir/in" >>"$dir/ready" 4>&- &
	done
	ip netns exec "$host" bash -c "for _ in \$(seq $1); do sleep 100000 & done; wait" 4>&- &
	until [ "$(wc -l <"$dir/ready")" = $holders ] && [ "$(ip netns pids "$host" | wc -l)" -ge "$1" ]; do
		[ "$(jobs -r | wc -l)" -gt $holders ] || { echo "watch.sh: a process that holds sockets has ended" >&2; exit 1; }
		sleep 0.2
	done
}

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# measure watches the namespace round by round and sets cpu and rss to the medians.
measure() {
	rm -rf "$dir"/run* "$dir"/report* "$dir/cost"
	for ((round = 1; round <= rounds; round++)); do
		"$plimsoll" watch -d "${seconds}s" --interval "$interval" --trace "$level" --host "srv=${way}netns:$host" --dir "$dir/run$round" --json >"$dir/report$round"
		jq -r '.cost | "\(.cpu_share_of_one_core * 100) \(.max_rss_bytes / 1048576)"' "$dir/report$round" >>"$dir/cost"
		[ "$table" ] || tail -n 1 "$dir/cost" | xargs printf 'round %s: %.2f %% of one core, at most %.1f MiB\n' "$round"
	done
	cpu=$(awk '{ print $1 }' "$dir/cost" | median)
	rss=$(awk '{ print $2 }' "$dir/cost" | median)
}

if [ "$table" ]; then
	printf '%10s %10s %22s %10s   %s\n' processes sockets 'share of one core' memory 'what was thinned'
	for size in '100 1000' '1000 1000' '1000 30000' '3000 100000' '10000 200000'; do
		# shellcheck disable=SC2086 # two words
		fill $size
		measure
		thinned=$(jq -r '.notes[]' "$dir"/report* | { grep -o 'listing\|looking at\|examined less often' || true; } | sort -u | paste -sd,)
		# shellcheck disable=SC2086
		printf '%10d %10d %20.2f %% %6.1f MiB   %s\n' $size "$cpu" "$rss" "${thinned:--}"
		leave
	done
	exit
fi

fill "$processes" "$sockets"
echo "$(ip netns pids "$host" | wc -l) processes, $(ip netns exec "$host" ss -tanH | wc -l) TCP sockets; on the whole machine $(ls -d /proc/[0-9]* | wc -l) processes; interval $interval"
measure
jq -r '.notes[]' "$dir"/report* | sort | uniq -c
printf 'median: %.2f %% of one core (limit 3 %%), at most %.1f MiB (limit 80 MiB)\n' "$cpu" "$rss"
[ "$interval" != 1s ] || awk -v cpu="$cpu" -v rss="$rss" 'BEGIN { exit cpu > 3 || rss > 80 }'
