#!/bin/bash
# Is a verdict the same where another store than Prometheus keeps the series?
#
#   bench/victoria.sh PLIMSOLL RUN...
#
# Starts Debian's victoria-metrics on loopback, puts the first host of each recorded run into it, with what an exporter says of its
# signals, and asks "plimsoll diagnose --prometheus" for the run's main window and "plimsoll diagnose" of that host's run here. Prints both, and ends with 1 where
# answer or roots differ. Give runs of one host: here all are judged. It needs jq, curl, and that package (scripts/install-deps tests).
set -euo pipefail

plimsoll=$1
shift
for tool in victoria-metrics jq curl "$plimsoll"; do
	command -v "$tool" >/dev/null || { echo "victoria.sh: $tool is not here: install or build it" >&2; exit 1; }
done
dir=$(mktemp -d)
at=127.0.0.1:18428
victoria-metrics -storageDataPath="$dir/data" -httpListenAddr=$at -memory.allowedBytes=268435456 -loggerLevel=ERROR >"$dir/log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
until curl -s $at/health >/dev/null; do
	kill -0 $server 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
	sleep 0.2
done

answer='"\(.verdict.answer) \([.verdict.root[]?.rule] | unique | join(" "))"'

# put puts a run's first host there, under a name of its own.
put() {
	local run=$1 name=$2 host end=$3
	host=$(jq -r '.hosts[0].name' "$run/run.json")
	"$plimsoll" export "$run" --openmetrics | grep -v '^#' | grep "host=\"$host\"" | sed "s/host=\"$host\"/host=\"$name\"/" |
		awk '{ t = $NF; $NF = ""; printf "%s%d\n", $0, t * 1000 }' >"$dir/text"
	jq -r --arg host "$name" --arg when "$end" '.hosts[0] as $x
		| "plimsoll_host_info{host=\"\($host)\",machine=\"m\",kernel=\"\($x.kernel)\"} 1 \($when)",
		(.status[$x.name] | to_entries[] | "plimsoll_signal_state{host=\"\($host)\",signal=\"\(.key)\",state=\"\(.value.state)\"} 1 \($when)")' "$run/run.json" >>"$dir/text"
	curl -sS --fail --data-binary "@$dir/text" "http://$at/api/v1/import/prometheus?extra_label=instance=$name:9109&extra_label=job=plimsoll"
	curl -sS --fail "http://$at/internal/force_flush"
}

failed=0 n=0
for run in "$@"; do
	n=$((n + 1))
	read -r start end < <(jq -r '[.windows[] | select(.name == "hold")][0] | "\(.start_ms) \(.end_ms)"' "$run/run.json")
	put "$run" "host$n" "$end"
	here=$("$plimsoll" diagnose "$run" --json | jq -r "$answer")
	there=$("$plimsoll" diagnose --prometheus "http://$at" --at "$(awk -v e="$end" 'BEGIN { printf "%.3f", e / 1000 }')" --window "$((end - start))ms" \
		--match "host=host$n" --json | jq -r "$answer")
	echo "$run: here: $here; there: $there; $(wc -l <"$dir/text") readings"
	[ "$here" = "$there" ] || failed=1
done
exit $failed
