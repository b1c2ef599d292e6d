#!/bin/bash
# How long after the load does the verdict come?
#
#   bench/verdict.sh [-d SECONDS] [-s SERVICES] [-k DIR] [PLIMSOLL]
#
# Loads an nginx in a network namespace of its own for so many seconds (60), with
# so many other services (50), each with a name, a listener and a connection of its
# own, so that the run holds some thousand series. The rules are judged twice over:
# the built-in ones, and copies whose expressions are written differently, so that
# nothing is taken from the first. It prints the series, the rules, the seconds from
# the end of the load to the end of the command (a second of it is the window
# "cool"), and how long diagnose alone takes. With -k the run is kept in DIR. It ends
# with 1 when the verdict took longer than 2 s. It needs root, go, ip, nginx, curl and
# jq, and a machine that does nothing else.
set -euo pipefail

seconds=60 services=50 keep=
while getopts d:s:k: option; do
	case $option in
	d) seconds=$OPTARG ;;
	s) services=$OPTARG ;;
	k) keep=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
plimsoll=${1:-bin/plimsoll}
for tool in go ip nginx curl jq "$plimsoll"; do
	command -v "$tool" >/dev/null || { echo "verdict.sh: $tool is not here: install or build it" >&2; exit 1; }
done
here=$(dirname "$0")

dir=$(mktemp -d)
chmod 755 "$dir"
host=plimsoll-bench-$$
mkfifo "$dir/in"
CGO_ENABLED=0 go build -o "$dir/socketpairs" "$here/testdata/socketpairs.go"
run=${keep:-$dir/run}

leave() {
	exec 4>&- || true # socketpairs ends with its input
	# All of them are ours: nobody else knows the namespace.
	ip netns pids "$host" 2>/dev/null | xargs -r kill 2>/dev/null || true
	wait || true
	ip netns delete "$host" 2>/dev/null || true
	rm -rf "$dir"
}
trap leave EXIT
trap 'exit 130' INT TERM

# copy_rules writes each rule and record again, under another name and with a space
# in each range, which makes another expression of it.
copy_rules() {
	mkdir -p "$dir/rules"
	echo 's/\[\$/[ $/g' >"$dir/copy.sed"
	sed -n 's/^- record: *\(.*\)/s\/\\b\1\\b\/\1_copy\/g/p' "$here/../rules/records.yaml" >>"$dir/copy.sed"
	sed -f "$dir/copy.sed" "$here/../rules/records.yaml" >"$dir/rules/records.yaml"
	for rule in "$here"/../rules/*/*/rule.yaml; do
		local id
		id=$(sed -n 's/^id: *//p' "$rule").copy
		mkdir -p "$dir/rules/copy/$id"
		sed -f "$dir/copy.sed" -e "s/^id:.*/id: $id/" "$rule" >"$dir/rules/copy/$id/rule.yaml"
	done
}

start_nginx() {
	head -c 599 /dev/zero | tr '\0' x >"$dir/file"
	cat >"$dir/nginx.conf" <<-END
		daemon off;
		pid $dir/nginx.pid;
		error_log $dir/error.log;
		events { }
		http {
			access_log off;
			client_body_temp_path $dir/body;
			proxy_temp_path $dir/proxy;
			fastcgi_temp_path $dir/fastcgi;
			uwsgi_temp_path $dir/uwsgi;
			scgi_temp_path $dir/scgi;
			server { listen 127.0.0.1:8080; root $dir; }
		}
	END
	ip netns exec "$host" nginx -p "$dir" -c "$dir/nginx.conf" 2>"$dir/start.log" 4>&- &
	for _ in {1..100}; do
		ip netns exec "$host" curl -sf -o /dev/null http://127.0.0.1:8080/file && return
		sleep 0.05
	done
	cat "$dir/start.log" >&2
	exit 1
}

start_services() {
	exec 4<>"$dir/in"
	: >"$dir/ready"
	for ((i = 1; i <= services; i++)); do
		ln "$dir/socketpairs" "$dir/service-$i"
		ip netns exec "$host" "$dir/service-$i" 2 <"$dir/in" >>"$dir/ready" 4>&- &
	done
	until [ "$(wc -l <"$dir/ready")" = "$services" ]; do sleep 0.1; done
}

seconds_since() { jq -n --argjson from "$1" --argjson to "$(date +%s%3N)" '($to - $from) / 1000'; }

copy_rules
ip netns add "$host"
ip -n "$host" link set lo up
start_nginx
start_services
ip netns exec "$host" "$plimsoll" run http://127.0.0.1:8080/file -c 20 -R 500 -d "${seconds}s" --rules "$dir/rules" --dir "$run" >"$dir/report" 4>&-
took=$(seconds_since "$(jq '.windows[] | select(.name == "hold").end_ms' "$run/run.json")")
series=$(jq -s 'map(.stats.numSeries) | max' "$run"/series/*/meta.json)
samples=$(jq -s 'map(.stats.numSamples) | add' "$run"/series/*/meta.json)
rules=$(find "$here/../rules" "$dir/rules" -name rule.yaml | wc -l)
head -n 1 "$dir/report"
echo "$series series, $samples samples, $seconds s, $rules rules: $took s from the end of the load to the verdict, of which 1 s is the window cool"
for _ in 1 2 3; do
	began=$(date +%s%3N)
	"$plimsoll" diagnose "$run" --rules "$dir/rules" >/dev/null
	echo "diagnose alone: $(seconds_since "$began") s"
done
awk -v took="$took" 'BEGIN { exit took > 2 }'
