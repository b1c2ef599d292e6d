#!/bin/bash
# Do the rules find a fault in what a Prometheus has scraped?
#
#   bench/prometheus.sh [-r DIR] [PLIMSOLL]
#
# Brings up the lab's cases conntrack-full and listen-backlog, starts Debian's
# prometheus and prometheus-node-exporter in the server's namespace (a scrape a
# second), drives the case's load, and asks "plimsoll diagnose --prometheus" for
# the window of the load. It ends with 1 when the case's own rule is not the root.
# With -r the scraped series that rules look at are left in DIR as CASE.json.gz,
# for tests without Prometheus. It needs root, jq, curl, and those two packages
# (scripts/install-deps tests); nothing listens outside the lab's namespaces.
set -euo pipefail

keep=
while getopts r: option; do
	case $option in
	r) keep=$(realpath -m "$OPTARG") ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
plimsoll=$(realpath "${1:-bin/plimsoll}")
for tool in prometheus prometheus-node-exporter jq curl "$plimsoll"; do
	command -v "$tool" >/dev/null || { echo "prometheus.sh: $tool is not here: install or build it" >&2; exit 1; }
done
names=$(grep -rhoE '\bnode_[a-zA-Z0-9_]+' "$(dirname "$0")/../rules" --include='rule.yaml' --include='records.yaml' | sort -u | paste -sd'|')

dir=$(mktemp -d)
limit=/proc/sys/net/netfilter/nf_conntrack_max
old=$(cat $limit)
pids=()
up=
leave() {
	[ "$(cat $limit)" = "$old" ] || echo "$old" >$limit
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
	wait
	pids=()
	[ -z "$up" ] || "$plimsoll" lab down >/dev/null 2>&1 || true
	up=
}
trap 'leave; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

client() { ip netns exec plimsoll-lab-client "$@"; }

# scrape starts the exporter and the server, and waits for the first scrapes.
scrape() {
	rm -rf "$dir/data"
	printf 'global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- {job_name: node, static_configs: [{targets: ["10.77.0.2:9100"]}]}\n' >"$dir/prometheus.yml"
	ip netns exec plimsoll-lab-server prometheus-node-exporter --web.listen-address=10.77.0.2:9100 --collector.netstat.fields='.*' \
		--no-collector.systemd --log.level=error >"$dir/exporter.log" 2>&1 &
	pids+=($!)
	ip netns exec plimsoll-lab-server prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/data" \
		--web.listen-address=10.77.0.2:9090 --log.level=error >"$dir/prometheus.log" 2>&1 &
	pids+=($!)
	for _ in $(seq 100); do
		if ask 'count(up == 1)' 2>/dev/null | jq -e '.data.result | length > 0' >/dev/null; then return; fi
		sleep 0.1
	done
	echo "prometheus.sh: nothing was scraped:" >&2
	cat "$dir"/*.log >&2
	exit 1
}

ask() { client curl -sS --max-time 5 --data-urlencode "query=$1" ${2:+--data-urlencode "time=$2"} http://10.77.0.2:9090/api/v1/query; }

# try CASE RULE [LIMIT]: causes, loads, judges.
try() {
	local case=$1 rule=$2 at connections root
	up=yes
	"$plimsoll" lab up "$case" >/dev/null
	scrape
	sleep 6
	connections=$(sed -n 's/^load: .*connections: \([0-9]*\).*/\1/p' "$(dirname "$0")/../lab/$case/case.yaml")
	[ -z "${3-}" ] || echo "$3" >$limit
	client "$plimsoll" load http://10.77.0.2/hello.txt -c "$connections" -d 8s --no-keepalive --calm 0 --ramp 0 >/dev/null
	at=$(date +%s.%3N)
	echo "$old" >$limit
	sleep 1
	client "$plimsoll" diagnose --prometheus http://10.77.0.2:9090 --at "$at" --window 8s --match host=10.77.0.2 >"$dir/verdict"
	root=$(client "$plimsoll" diagnose --prometheus http://10.77.0.2:9090 --at "$at" --window 8s --match host=10.77.0.2 --json |
		jq -r '[.verdict.root[].rule] | join(" ")')
	if [ "$keep" ]; then
		mkdir -p "$keep"
		ask "{__name__=~\"$names\"}[16s]" "$at" | jq -c '.data.result' | gzip -9n >"$keep/$case.json.gz"
		echo "$case: window ends at $at" >&2
	fi
	leave
	cat "$dir/verdict"
	if [ "$root" != "$rule" ]; then
		echo "prometheus.sh: $case: root is \"$root\", want $rule" >&2
		return 1
	fi
	echo "== $case: $root, from scraped series alone"
}

try conntrack-full net.conntrack.table_full 200
try listen-backlog net.listen.queue_full
