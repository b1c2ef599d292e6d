#!/bin/bash
# Does one cause ring once?
#
#   bench/alerts.sh [-n] [-r RATE] [-w COMMAND] PLIMSOLL CASE RULE [CASE RULE]...
#
# Brings up each of the lab's cases, starts an exporter (watch --listen) in each of
# its two namespaces, Debian's prometheus and prometheus-alertmanager with what
# "rules export" writes, and drives the case's load for 100 s, at its rate or 2,000 requests a second (or -r RATE; 0 is as fast as replies come): a window, and what an alert waits for. It prints how long
# after its condition first held the case's own rule was an alert that the
# Alertmanager does not inhibit, which others it inhibits, which ring besides, how long
# after the load it was resolved, and whether "diagnose --prometheus" has the root of a local
# watch of the same time. It ends with 1 when the alert did not come within 30 s, or another cause
# rings. With -n it does not wait until it is resolved, which takes some minutes. RULE "none" is for healthy cases: no alert of severity warning may ring. COMMAND, if any, runs
# the load. It needs root, jq, curl, and those packages (scripts/install-deps tests).
set -euo pipefail

wrap=
wait=yes
usual=2000
while getopts nr:w: option; do
	case $option in
	n) wait= ;;
	r) usual=$OPTARG ;;
	w) wrap=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
plimsoll=$(realpath "$1")
shift
for tool in prometheus prometheus-alertmanager jq curl "$plimsoll"; do
	command -v "$tool" >/dev/null || { echo "alerts.sh: $tool is not here: install or build it" >&2; exit 1; }
done

here=$(realpath "$(dirname "$0")")
dir=$(mktemp -d)
pids=()
driver=
up=
leave() {
	touch "$dir/over" # what follows the Alertmanager ends with that
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
	[ -z "$driver" ] || kill "$driver" 2>/dev/null || true
	wait
	pids=()
	driver=
	[ -z "$up" ] || "$plimsoll" lab down >/dev/null 2>&1 || true
	up=
}
trap 'leave; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

server() { ip netns exec plimsoll-lab-server "$@"; }
client() { ip netns exec plimsoll-lab-client "$@"; }
ask() { client curl -sS --max-time 5 "http://10.77.0.1:$1"; }
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }

# start runs a program in a namespace in the background. It is no function that runs it: $! would be a shell's, whose
# child outlives it.
start() {
	local where=$1
	shift
	ip netns exec "plimsoll-lab-$where" "$@" >"$dir/$(basename "$1").$where.log" 2>&1 &
	pids+=($!)
}

# watchers starts the exporters, the server and its Alertmanager, and waits for scrapes of both.
watchers() {
	rm -rf "$dir"/*
	"$plimsoll" rules export --prometheus --together system >"$dir/plimsoll.rules.yml"
	"$plimsoll" rules export --alertmanager --together system >"$dir/alertmanager.yml"
	cat >"$dir/prometheus.yml" <<-END
		global: {scrape_interval: 5s, evaluation_interval: 5s}
		rule_files: [plimsoll.rules.yml]
		alerting: {alertmanagers: [{static_configs: [{targets: ["10.77.0.1:9093"]}]}]}
		scrape_configs: [{job_name: plimsoll, static_configs: [{targets: ["10.77.0.1:9109", "10.77.0.2:9109"], labels: {system: lab}}]}]
	END
	start server "$plimsoll" watch --listen 10.77.0.2:9109 --insecure --host server=netns:plimsoll-lab-server
	start client "$plimsoll" watch --listen 10.77.0.1:9109 --insecure --host client=netns:plimsoll-lab-client
	# With the client: a server that takes no new connections answers neither.
	start client prometheus-alertmanager --config.file="$dir/alertmanager.yml" --storage.path="$dir/am" \
		--web.listen-address=10.77.0.1:9093 --cluster.listen-address=
	start client prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/data" --web.listen-address=10.77.0.1:9090
	for _ in $(seq 300); do
		if [ "$(ask '9090/api/v1/query?query=count(up==1)' 2>/dev/null | jq -r '.data.result[0].value[1]' 2>/dev/null)" = 2 ]; then return; fi
		sleep 0.2
	done
	echo "alerts.sh: nothing was scraped:" >&2
	tail -n 5 "$dir"/*.log >&2
	exit 1
}

# ringing lists the alerts of a state (active, suppressed) at the Alertmanager, but for conditions.
ringing() {
	ask "9093/api/v2/alerts" 2>/dev/null | jq -r --arg state "$1" \
		'[.[] | select(.status.state == $state and .labels.plimsoll_kind != "condition") | .labels | "\(.plimsoll_rule)@\(.host)/\(.severity)"] | unique | join(" ")'
}

# held is when a rule's condition first held, as the server has it.
held() {
	ask 9090/api/v1/alerts | jq -r --arg rule "$1" '[.data.alerts[] | select(.labels.plimsoll_rule == $rule) | .activeAt] | min // empty' |
		sed 's/T/ /' | { read -r at && date -u -d "${at%Z} UTC" +%s.%N; } || true
}

# drive becomes the load of a case for 100 s, at a rate unless each request wants a connection of its own. It is of the idle class, which has only
# the CPU time that nobody else wants, as if it came from machines elsewhere: without a rate it would take as much as it gets, and cpu.saturated
# rang, which was true; at nice 19 the service still waited for it now and then.
drive() {
	local load url connections rate more=
	load=$(sed -n 's/^load: //p' "$here/../lab/$1/case.yaml")
	url=$(sed 's/.*url: \([^,}]*\).*/\1/' <<<"$load" | tr -d '"')
	connections=$(sed -n 's/.*connections: \([0-9]*\).*/\1/p' <<<"$load")
	rate=$(sed -n 's/.*rate: \([0-9]*\).*/\1/p' <<<"$load")
	if grep -q 'no_keepalive: true' <<<"$load"; then
		more=--no-keepalive
	else # who is refused would come again as fast as the CPUs let him, and that rings, too
		rate=${rate:-$usual}
	fi
	[ "${rate:-0}" = 0 ] || more="$more -R $rate"
	# COMMAND may keep the load waiting, so that it says itself when it begins.
	# shellcheck disable=SC2086,SC2016 # lists of words; what the inner shell is to read
	exec $wrap sh -c 'touch "$0" && exec "$@"' "$dir/begun" chrt --idle 0 ip netns exec plimsoll-lab-client "$plimsoll" load "$url" -c "$connections" -d 100s --calm 0 --ramp 0 $more >"$dir/load" 2>&1
}

# note follows the Alertmanager while the load lasts, and keeps when the rule first rang.
note() {
	while [ ! -e "$dir/over" ]; do
		if [ ! -e "$dir/rang" ] && [[ " $(ringing active)" == *" $1@"* ]]; then now >"$dir/rang"; fi
		ringing active | tr ' ' '\n' >>"$dir/active"
		ringing suppressed | tr ' ' '\n' >>"$dir/suppressed"
		sleep 1
	done
}

# judge says what came of it.
judge() {
	local case=$1 rule=$2 loud quiet late others
	loud=$(sort -u "$dir/active" | grep . | paste -sd' ' || true)
	quiet=$(sort -u "$dir/suppressed" | grep . | paste -sd' ' || true)
	others=$(tr ' ' '\n' <<<"$loud" | awk -v own="$rule@" '/\/warning$/ && index($0, own) != 1' | paste -sd' ')
	if [ "$rule" = none ]; then
		echo "== $case: rang: ${loud:--}"
		[ -z "$others" ]
		return
	fi
	late=$( [ -e "$dir/rang" ] && awk -v a="$(cat "$dir/held")" -v b="$(cat "$dir/rang")" 'BEGIN { printf "%.1f", b - a }' || echo never)
	echo "== $case: $rule rang after ${late} s; rang: ${loud:--}; inhibited: ${quiet:--}"
	[ -z "$others" ] || echo "   of another cause: $others"
	[ -z "$others" ] && [ "$late" != never ] && awk -v l="$late" 'BEGIN { exit l > 30 }'
}

try() {
	local case=$1 rule=$2 at bad=0 noter end still
	up=yes
	"$plimsoll" lab up "$case" >/dev/null
	watchers
	note "$rule" &
	noter=$!
	drive "$case" &
	driver=$!
	until [ -e "$dir/begun" ] || ! kill -0 "$driver" 2>/dev/null; do sleep 0.1; done
	sleep 5
	"$plimsoll" watch -d 40s --host server=netns:plimsoll-lab-server --json >"$dir/local.json" 2>/dev/null || true
	at=$(now)
	[ "$rule" = none ] || held "$rule" >"$dir/held"
	wait "$driver"
	driver=
	end=$(now)
	touch "$dir/over"
	wait $noter
	client "$plimsoll" diagnose --prometheus http://10.77.0.1:9090 --at "$at" --window 40s --match host=server --json >"$dir/far.json" || true
	judge "$case" "$rule" || bad=1
	jq -r '"   \(input_filename | sub(".*/"; "")): \(.verdict.answer) \([.verdict.root[].rule] | unique | join(" "))"' "$dir/local.json" "$dir/far.json"
	if [ "$rule" != none ] && [ -n "$wait" ]; then
		for _ in $(seq 400); do
			if still=$(ringing active) && [[ $still != */warning* ]]; then break; fi # who does not answer has not said that all is over
			sleep 1
		done
		echo "   resolved $(since "$end") s after the load"
	fi
	leave
	return $bad
}

failed=0
while [ $# -gt 1 ]; do
	try "$1" "$2" || failed=1
	shift 2
done
exit $failed
