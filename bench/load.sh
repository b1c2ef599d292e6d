#!/bin/bash
# How much processor time does a request cost our load engine, and how much wrk
# (or, at a fixed rate, h2load)?
#
#   bench/load.sh [-r ROUNDS] [-d SECONDS] [-c CONNECTIONS] [-s] [-x] [-R RATE] [-w TOOL] [-2 STREAMS] [-p REQUESTS] [-n BYTES] [-e ENGINE] [-b BUILD] [-k] [-f] [PLIMSOLL]
#
# Both drive one nginx of our own (one worker on CPU 0, no access log, a file of
# 599 bytes) from CPU 1 with one thread, in alternating pairs, so that a machine
# that changes its mind changes it for both. -s: over TLS (a P-256 key; no session is
# resumed). -x: a new connection, with -s a full handshake, for each request. -R: both send so many requests a second, and h2load stands in wrk's
# place. -2: over HTTP/2, so many streams on each connection, h2load in wrk's place. -p: so many requests at once on each connection. -e: ours by that engine (io_uring: what "plimsoll load" chooses by itself; not with -s, -2 and -p). -w: with -R, in h2load's place wrk2, bombardier or oha (with --latency-correction). -b: another build of ours stands there, by epoll, so that what a change costs is seen, with -B by the engine that -e says.
# -n: a file of so many bytes.
# -k: in nginx's place a server that reads nothing (floor.c), so that the generator is the limit. -f: in wrk's place a client that
# parses and measures nothing (floor.c), keep-alive only: what is left is the kernel's. Prints the median, least and most of each side, and of the ratio
# within a pair, of the generator's CPU time and of the server's: what a generator makes the server spend is part of its cost. It needs nginx, wrk (h2load), taskset, curl, jq and, with -s, openssl, and a quiet machine:
# look at the spread before you believe the median.
set -euo pipefail

rounds=7 seconds=3 connections=100 keepalive=true rate=0 peer=wrk build= scheme=http tls=null ssl= streams=0 by= pipeline=1 sink= tool= same= size=599
while getopts r:d:c:sxR:w:b:B:2:p:n:e:kf option; do
	case $option in
	r) rounds=$OPTARG ;;
	d) seconds=$OPTARG ;;
	c) connections=$OPTARG ;;
	s) scheme=https ;;
	x) keepalive=false ;;
	R) rate=$OPTARG peer=h2load ;;
	w) tool=$OPTARG ;;
	p) pipeline=$OPTARG ;;
	n) size=$OPTARG ;;
	e) by=$OPTARG ;;
	k) sink=yes ;;
	f) peer=floor ;;
	2) streams=$OPTARG peer=h2load ;;
	b) build=$OPTARG ;;
	B) build=$OPTARG same=yes ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
plimsoll=${1:-./plimsoll}
[ "$rate" = 0 ] || peer=${tool:-h2load}
[ -z "$build" ] || peer=$build
gcc=
if [ -n "$sink" ] || [ "$peer" = floor ]; then
	gcc=gcc
	[ "$keepalive$scheme$streams$pipeline" = truehttp01 ] || { echo "load.sh: -k and -f go with plain requests on connections that stay" >&2; exit 2; }
fi
for tool in nginx $gcc ${peer#floor} taskset curl jq "$plimsoll"; do
	command -v "$tool" >/dev/null || { echo "load.sh: $tool is not here: install or build it" >&2; exit 1; }
done

dir=$(mktemp -d)
h2=${streams#0} # empty without HTTP/2
nginx=
finish() {
	[ -z "$nginx" ] || { kill "$nginx"; wait "$nginx" || true; }
	rm -rf "$dir"
}
trap finish EXIT
chmod 755 "$dir"
head -c "$size" /dev/zero | tr '\0' x >"$dir/file"
if [ $scheme = https ]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$dir/key.pem" -out "$dir/cert.pem" \
		-days 2 -subj /CN=bench -addext subjectAltName=IP:127.0.0.1 2>"$dir/err" || { cat "$dir/err" >&2; exit 1; }
	tls=$(jq -nc --arg ca "$dir/cert.pem" '{ca_cert: $ca}')
	ssl="ssl_certificate $dir/cert.pem; ssl_certificate_key $dir/key.pem; ssl_session_tickets off;"
fi

start_nginx() { # port
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
			server { listen 127.0.0.1:$1 ${ssl:+ssl} $([ $streams = 0 ] || echo http2) backlog=8192; root $dir; $ssl }
		}
	END
	nginx -p "$dir" -c "$dir/nginx.conf" 2>"$dir/start.log" &
	nginx=$!
	for _ in {1..100}; do
		curl -ksf ${h2:+--http2-prior-knowledge} -o /dev/null "$scheme://127.0.0.1:$1/file" && return
		kill -0 "$nginx" 2>/dev/null || { cat "$dir/start.log" >&2; nginx=; exit 1; }
		sleep 0.05
	done
	echo "load.sh: nginx does not answer on 127.0.0.1:$1" >&2
	exit 1
}

start_sink() { # port
	taskset -c 0 "$dir/floor" sink "$1" &
	nginx=$!
	until curl -sf -o /dev/null "http://127.0.0.1:$1/"; do
		kill -0 "$nginx" 2>/dev/null || { nginx=; exit 1; }
		sleep 0.05
	done
}

# served is the CPU time that the server has used, in nanoseconds.
served() { (cd /proc && cat $(printf '%s/schedstat ' "$nginx" $(cat "$nginx"/task/*/children))) | awk '{ s += $1 } END { printf "%.0f", s }'; }

# timed runs a command on CPU 1 and prints its CPU seconds; its output goes to $dir/out.
timed() {
	local TIMEFORMAT='%U %S'
	{ time taskset -c 1 "$@" >"$dir/out" 2>"$dir/err"; } 2>&1
}

# Each side prints: requests, seconds, user seconds, system seconds.
engine() { # binary, engine
	local plan cpu
	plan=$(jq -nc --arg by "${2-}" --argjson p "$pipeline" --arg url "$url" --argjson c "$connections" --argjson ms $((seconds * 1000)) --argjson k $keepalive --argjson r "$rate" --argjson tls "$tls" --argjson m "$streams" \
		'{url: $url, tls: $tls, connections: $c, threads: 1, duration_ms: $ms, keep_alive: $k, rate: $r, http2: ($m > 0), streams: $m, engine: $by, pipeline: $p}')
	cpu=$(lasting "$plan" | timed "$1" load-engine)
	echo "$(tail -n 1 "$dir/out" | jq -r '.totals | "\(.requests) \(.seconds)"') $cpu"
}

# lasting is the engine's input: the plan, and no end of it before the last record is there, since the engine ends with it.
lasting() {
	echo "$1"
	sleep "$seconds"
	for _ in {1..100}; do
		grep -q '"final":true' "$dir/out" && return
		sleep 0.1
	done
}

wrks() {
	local cpu headers=()
	$keepalive || headers=(-H 'Connection: close')
	if [ "$pipeline" -gt 1 ]; then
		echo "init = function() all = string.rep(wrk.format(), $pipeline) end request = function() return all end" >"$dir/pipeline.lua"
		headers+=(-s "$dir/pipeline.lua")
	fi
	cpu=$(timed wrk -t1 -c"$connections" -d"${seconds}s" "${headers[@]}" "$url")
	echo "$(sed -nE 's/^ *([0-9]+) requests in ([0-9.]+)s.*/\1 \2/p' "$dir/out") $cpu"
}

# spread prints the median, least and most of the numbers on its input.
spread() {
	sort -g | awk '{ v[NR] = $1 } END { printf "%8.2f  (%.2f to %.2f)", v[int((NR + 1) / 2)], v[1], v[NR] }'
}

h2loads() {
	local cpu how=(--h1)
	[ $streams = 0 ] || how=(-m "$streams")
	[ "$rate" = 0 ] || how+=(--rps "$(jq -n "$rate / $connections")")
	$keepalive || how+=(-H 'Connection: close')
	cpu=$(timed h2load "${how[@]}" -t1 -c"$connections" -D"$seconds" "$url")
	echo "$(sed -nE 's/^requests: [0-9]+ total, [0-9]+ started, [0-9]+ done, ([0-9]+) succeeded.*/\1/p' "$dir/out") $seconds $cpu"
}

wrk2s() {
	local cpu
	cpu=$(timed wrk2 -t1 -c"$connections" -d"${seconds}s" -R"$rate" "$url")
	echo "$(sed -nE 's/^ *([0-9]+) requests in ([0-9.]+)s.*/\1 \2/p' "$dir/out") $cpu"
}

bombardiers() {
	local cpu
	cpu=$(timed bombardier -c "$connections" -d "${seconds}s" -r "$rate" -p r -o json "$url")
	echo "$(jq -r '.result | "\(.req2xx) \(.timeTakenSeconds)"' "$dir/out") $cpu"
}

ohas() {
	local cpu
	cpu=$(timed oha --no-tui --output-format json -c "$connections" -z "${seconds}s" -q "$rate" --latency-correction "$url")
	echo "$(jq -r '"\(.statusCodeDistribution["200"]) \(.summary.total)"' "$dir/out") $cpu"
}

floors() {
	local cpu bytes
	bytes=$(curl -s -o /dev/null -w '%{size_header}+%{size_download}' "$url")
	cpu=$(timed "$dir/floor" client "$port" "$connections" "$seconds" $((bytes)) $'GET /file HTTP/1.1\r\nHost: floor\r\n\r\n')
	echo "$(cat "$dir/out") $cpu"
}

# side runs one and writes what it prints, and the server's CPU seconds, to a file.
side() { # file, command…
	local file=$1 before text
	shift
	before=$(served)
	text=$("$@")
	echo "$text $(awk -v a="$before" -v b="$(served)" 'BEGIN { print (b - a) / 1e9 }')" >>"$dir/$file"
}

report() { # name, file
	echo "$1  $(awk '{ print $1 / $2 / 1000 }' "$2" | spread) thousand requests/s"
	echo "$1  $(awk '{ print ($3 + $4) / $1 * 1e6 }' "$2" | spread) CPU-seconds per million requests"
	echo "$1  $(awk '{ print $3 / $1 * 1e6 }' "$2" | spread) of them in user space"
	echo "$1  $(awk '{ print $5 / $1 * 1e6 }' "$2" | spread) of the server's"
}

port=$((20000 + RANDOM % 10000))
url=$scheme://127.0.0.1:$port/file
[ -z "$gcc" ] || gcc -O2 -o "$dir/floor" "$(dirname "$0")/floor/floor.c"
if [ -n "$sink" ]; then start_sink $port; else start_nginx $port; fi
for ((round = 1; round <= rounds; round++)); do
	side ours engine "$plimsoll" "$by"
	if [ -n "$build" ]; then side peers engine "$build" "${same:+$by}"; else side peers "${peer}s"; fi
done
report plimsoll "$dir/ours"
report "$(printf %-8s $peer)" "$dir/peers"
ratio=$(paste "$dir/ours" "$dir/peers" | awk '{ print ($3 + $4) / $1 / (($8 + $9) / $6) }' | spread)
echo "CPU per request, plimsoll over $peer within a pair: $ratio"
echo "the server's CPU per request, of the same pairs:    $(paste "$dir/ours" "$dir/peers" | awk '{ print $5 / $1 / ($10 / $6) }' | spread)"
