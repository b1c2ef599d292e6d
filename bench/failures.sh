#!/bin/sh
# A load that fails: what does "plimsoll load" say of each kind of failure, and
# with which exit code does it end? All of it is in a network namespace of its own,
# whose ports are made few. It needs root, nginx and nft.
#
#   bench/failures.sh PLIMSOLL
set -eu
plimsoll=$(realpath "${1:?"usage: bench/failures.sh PLIMSOLL"}")
[ -n "${FAILURES_INSIDE:-}" ] || exec env FAILURES_INSIDE=yes unshare --net "$0" "$plimsoll"

dir=$(mktemp -d)
ip link set lo up
cat > "$dir/nginx.conf" <<EOC
worker_processes 1; daemon off; pid $dir/pid; error_log $dir/error.log;
worker_rlimit_nofile 20000;
events { worker_connections 15000; }
http {
    access_log off; keepalive_requests 1000000;
    client_body_temp_path $dir/a; proxy_temp_path $dir/b; fastcgi_temp_path $dir/c; uwsgi_temp_path $dir/d; scgi_temp_path $dir/e;
    server { listen 127.0.0.1:8080 backlog=4096; location / { return 200 "hello"; } location /broken { return 500; } }
}
EOC
nginx -c "$dir/nginx.conf" &
nginx=$!
trap 'kill "$nginx"; wait "$nginx" || true; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
until [ -s "$dir/pid" ]; do sleep 0.1; done

# fails NAME COMMAND...: the command, what it prints, and its exit code.
fails() {
    name=$1
    shift
    echo "== $name"
    code=0
    timeout 120 "$@" > "$dir/out" 2>&1 < /dev/null || code=$?
    sed "s|$plimsoll|plimsoll|; s|^|    |" "$dir/out"
    echo "exit $code"
}
load() {
    name=$1
    shift
    fails "$name: plimsoll load $*" "$plimsoll" load -d 2s "$@"
}
url=http://127.0.0.1:8080/

load "every reply is a failure" -c 10 "${url}broken"
load "nobody listens" -c 10 http://127.0.0.1:8081/
load "a name that nobody knows" http://no-such-host.invalid/
load "a socket that is not there" --unix-socket "$dir/none" http://localhost/
load "TLS where none is spoken" -c 10 https://127.0.0.1:8080/
load "more than can be offered" -c 10 -R 3000000 "$url"
load "a bound that is missed" -c 10 --slo 'p50<1us' "$url"
ip route add default dev lo # from where nothing comes back
load "somebody else's host" http://192.0.2.1/
load "and one on the internet" http://9.9.9.9/
ip route delete default
load "half a URL" http//x
for files in 256 64; do
    fails "ulimit -n $files: plimsoll load -c 1000" sh -c "ulimit -n $files; exec '$plimsoll' load -d 2s -c 1000 $url"
done
fails "ulimit -n 256: plimsoll run -c 1000" sh -c "ulimit -n 256; PLIMSOLL_RUNS='$dir/runs' exec '$plimsoll' run --trace off --baseline 0s --calm 0s -d 2s -c 1000 $url"
load "more than the files of a process" -c 30000 "$url"
echo "10000 10499" > /proc/sys/net/ipv4/ip_local_port_range
load "500 ports for 1,000 connections" -c 1000 "$url"
load "500 ports for connections that are closed" -c 10 --no-keepalive "$url"
load "and right after that" -c 400 "$url"
echo "10000 60000" > /proc/sys/net/ipv4/ip_local_port_range
nft add table inet failures
nft add chain inet failures in '{ type filter hook input priority 0; }'
nft add rule inet failures in tcp dport 8080 'tcp flags & (syn | ack) == syn' drop
load "nothing comes back" -c 10 --timeout 1s "$url"
