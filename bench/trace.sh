#!/bin/bash
# What does a tracer cost the service that is watched?
#
#   bench/trace.sh [-r ROUNDS] [-d SECONDS] [-c CONNECTIONS] [PLIMSOLL]
#
# One nginx of our own (one worker on CPU 0, no access log, a file of 599 bytes),
# driven by wrk from CPU 1, keep-alive; without and with each tracer in turn,
# A B A B, so that a machine that changes its mind changes it for both. Prints for
# each tracer the median, least and most of two ratios within a pair: requests per
# second, and CPU time per request of the nginx worker. With bpftool it also
# prints what the kernel says of our programs: runs, and nanoseconds a run. It needs
# root, nginx, wrk, taskset and curl, and a quiet machine: look at the spread
# before you believe the median.
set -euo pipefail

rounds=5 seconds=3 connections=100
while getopts r:d:c: option; do
	case $option in
	r) rounds=$OPTARG ;;
	d) seconds=$OPTARG ;;
	c) connections=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
plimsoll=${1:-./plimsoll}
for tool in nginx wrk taskset curl "$plimsoll"; do
	command -v "$tool" >/dev/null || { echo "trace.sh: $tool is not here: install or build it" >&2; exit 1; }
done

dir=$(mktemp -d)
nginx= tracer= stats=
finish() {
	[ -z "$tracer" ] || kill "$tracer" 2>/dev/null || true
	[ -z "$nginx" ] || { kill "$nginx"; wait "$nginx" || true; }
	[ -z "$stats" ] || echo "$stats" >/proc/sys/kernel/bpf_stats_enabled
	rm -rf "$dir"
}
trap finish EXIT
chmod 755 "$dir"
head -c 599 /dev/zero | tr '\0' x >"$dir/file"
port=$((20000 + RANDOM % 10000))
url=http://127.0.0.1:$port/file
cat >"$dir/nginx.conf" <<-END
	worker_processes 1;
	worker_cpu_affinity 01;
	daemon off;
	pid $dir/nginx.pid;
	error_log $dir/error.log;
	events { worker_connections 8192; }
	http {
		access_log off;
		keepalive_requests 100000000;
		client_body_temp_path $dir/body;
		proxy_temp_path $dir/proxy;
		fastcgi_temp_path $dir/fastcgi;
		uwsgi_temp_path $dir/uwsgi;
		scgi_temp_path $dir/scgi;
		server { listen 127.0.0.1:$port backlog=8192; root $dir; }
	}
END
nginx -p "$dir" -c "$dir/nginx.conf" 2>"$dir/start.log" &
nginx=$!
for _ in {1..100}; do
	curl -sf -o /dev/null "$url" && break
	kill -0 "$nginx" 2>/dev/null || { cat "$dir/start.log" >&2; nginx=; exit 1; }
	sleep 0.05
done
worker=$(cat "/proc/$nginx/task/$nginx/children")
worker=${worker% }

# ran prints how long the worker was on a CPU so far, in nanoseconds.
ran() { awk '{ print $1 }' "/proc/$worker/schedstat"; }

# load prints: requests, requests per second, nanoseconds of CPU per request.
load() {
	local before
	before=$(ran)
	taskset -c 1 wrk -t1 -c"$connections" -d"${seconds}s" "$url" >"$dir/out"
	local after
	after=$(ran)
	awk -v ns=$((after - before)) '/requests in/ { n = $1 } /Requests\/sec/ { print n, $2, ns / n }' "$dir/out"
}

# traced is load with a tracer on, which outlives it.
traced() { # tracer
	taskset -c 1 "$plimsoll" trace "$1" -d 1h --json >"$dir/trace.json" &
	tracer=$!
	sleep 0.7 # it loads its programs
	load
	kill -INT "$tracer"
	wait "$tracer" || true
	tracer=
}

# spread prints the median, least and most of the numbers on its input.
spread() {
	sort -g | awk '{ v[NR] = $1 } END { printf "%.4f  (%.4f to %.4f)", v[int((NR + 1) / 2)], v[1], v[NR] }'
}

# programs prints what the kernel counted of our programs during a load.
programs() { # tracer
	command -v bpftool >/dev/null || return 0
	stats=$(cat /proc/sys/kernel/bpf_stats_enabled)
	echo 1 >/proc/sys/kernel/bpf_stats_enabled
	taskset -c 1 "$plimsoll" trace "$1" -d 1h --json >"$dir/trace.json" &
	tracer=$!
	sleep 0.7
	load >"$dir/stats"
	bpftool prog show | awk '
		/name (process_fork|process_exec|process_exit|process_free|task_switch|wakeup|wakeup_new) / && /run_cnt/ {
			for (i = 1; i < NF; i++) { if ($i == "name") n = $(i+1); if ($i == "run_time_ns") t = $(i+1); if ($i == "run_cnt") c = $(i+1) }
			if (c > 0) printf "  %-13s %9d runs, %5.0f ns each\n", n, c, t / c
		}'
	echo "$stats" >/proc/sys/kernel/bpf_stats_enabled
	stats=
	kill -INT "$tracer"
	wait "$tracer" || true
	tracer=
}

load >/dev/null # warm
for name in exec runqueue; do
	for ((round = 1; round <= rounds; round++)); do
		load >>"$dir/$name.off"
		traced "$name" >>"$dir/$name.on"
	done
	echo "$name"
	echo "  requests/s, on over off:      $(paste "$dir/$name.off" "$dir/$name.on" | awk '{ print $5 / $2 }' | spread)"
	echo "  CPU per request, on over off: $(paste "$dir/$name.off" "$dir/$name.on" | awk '{ print $6 / $3 }' | spread)"
	programs "$name"
done
