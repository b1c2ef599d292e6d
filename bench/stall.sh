#!/bin/sh
# A server that stops for 1 s in 10 s: what does each load tool say of it? An
# open load of RATE requests/s at even distances meets it with a tenth of its
# requests, which then wait from 0 to 1 s: p90 is 0 s, p95 0.5 s, p99 0.9 s,
# p99.9 0.99 s, and the longest 1 s, all a little later, since the queue is worked
# off meanwhile; what packets on lo say of ours is exact. Whatever tool is not
# there is left out.
#
#   bench/stall.sh PLIMSOLL
set -eu
plimsoll=${1:?"usage: bench/stall.sh PLIMSOLL"}
rate=2000
url=http://127.0.0.1:18099/
dir=$(mktemp -d)
cat > "$dir/nginx.conf" <<EOF
worker_processes 1; daemon off; pid $dir/pid; error_log $dir/error.log;
events { worker_connections 10000; }
http {
    access_log off; keepalive_requests 1000000;
    client_body_temp_path $dir/a; proxy_temp_path $dir/b; fastcgi_temp_path $dir/c; uwsgi_temp_path $dir/d; scgi_temp_path $dir/e;
    server { listen 127.0.0.1:18099 backlog=4096; location / { return 200 "hello"; } }
}
EOF
nginx -c "$dir/nginx.conf" &
nginx=$!
worker=
# a worker that is stopped when this is interrupted would stay behind
trap '[ -z "$worker" ] || kill -CONT "$worker"; kill "$nginx"; wait "$nginx" || true; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
sleep 1
worker=$(cat "/proc/$nginx/task/$nginx/children")
worker=${worker%% *}

# tool NAME COMMAND...: runs it for 10 s, and stops the server from second 4 to 5.
tool() {
    name=$1
    shift
    command -v "$1" > /dev/null || { echo "== $name: $1 is not here"; return 0; }
    echo "== $name"
    "$@" > "$dir/out" 2>&1 &
    load=$!
    sleep 4
    kill -STOP "$worker"
    sleep 1
    kill -CONT "$worker"
    wait "$load" || echo "exit code $?"
    sed '/"waited_us"/,$d' "$dir/out" | grep -iE '^ *(latencies|50|75|90|95|99)|^ *http_req_duration|"(p[0-9]+|max)": |^time for request' | head -9
}

# packets NAME COMMAND...: the same, and what tcpdump saw of it: the k-th request sent was due k/RATE after the first could have been sent,
# and its reply is the one that its connection brought next.
packets() {
    command -v tshark > /dev/null && command -v tcpdump > /dev/null || { tool "$@"; return 0; }
    tcpdump -i lo -s 96 -B 65536 -U -w "$dir/pcap" 'tcp port 18099' 2> "$dir/tcpdump" &
    dump=$!
    until grep -q listening "$dir/tcpdump"; do
        kill -0 "$dump" 2> /dev/null || { cat "$dir/tcpdump" >&2; tool "$@"; return 0; }
        sleep 0.1
    done
    tool "$@"
    sleep 3
    kill -INT "$dump"
    wait "$dump" || true
    tshark -r "$dir/pcap" -Y 'tcp.len>0' -T fields -e frame.time_relative -e tcp.srcport -e tcp.dstport |
        awk -v rate="$rate" '
            $3 == 18099 { due = $1 - n / rate; if (n == 0 || due < first) first = due; at[$2, sent[$2]++] = n++ }
            $2 == 18099 && got[$3] < sent[$3] { reply[at[$3, got[$3]++]] = $1 }
            END { for (k in reply) printf "%.6f\n", reply[k] - first - k / rate }' |
        sort -n | awk '
            { waited[NR] = $1 }
            function at(share, k) { k = int(share * NR); if (k < share * NR) k++; return waited[k] * 1e6 }
            END { printf "packets of %d requests (µs): p50 %.0f, p90 %.0f, p95 %.0f, p99 %.0f, p99.9 %.0f, longest %.0f\n", NR, at(.5), at(.9), at(.95), at(.99), at(.999), at(1) }'
}

packets "plimsoll load -R $rate (µs)" "$plimsoll" load "$url" -R "$rate" -c 100 -d 10s --json
packets "plimsoll load -R $rate --engine epoll (µs)" "$plimsoll" load "$url" -R "$rate" -c 100 -d 10s --engine epoll --json
tool "plimsoll load, closed (µs)" "$plimsoll" load "$url" -c 100 -d 10s --json
if command -v vegeta > /dev/null; then
    tool "vegeta -rate=$rate" sh -c "echo GET $url | vegeta attack -rate=$rate -duration=10s | vegeta report"
    tool "vegeta -rate=$rate -max-workers=100" sh -c "echo GET $url | vegeta attack -rate=$rate -duration=10s -max-workers=100 | vegeta report"
fi
tool wrk wrk -t1 -c100 -d10s --latency "$url"
tool "wrk2 -R$rate" wrk2 -t1 -c100 -d10s "-R$rate" --latency "$url"
tool "oha -q $rate --latency-correction" oha -z 10s -c 100 -q "$rate" --latency-correction --no-tui "$url"
tool "oha -q $rate" oha -z 10s -c 100 -q "$rate" --no-tui "$url"
tool "bombardier -r $rate" bombardier -c 100 -d 10s -r "$rate" -l -p r "$url"
cat > "$dir/k6.js" <<EOF
import http from 'k6/http';
export const options = { summaryTrendStats: ['p(50)', 'p(90)', 'p(95)', 'p(99)', 'p(99.9)', 'max'],
  scenarios: { a: { executor: 'constant-arrival-rate', rate: $rate, timeUnit: '1s', duration: '10s', preAllocatedVUs: +__ENV.USERS, maxVUs: +__ENV.USERS } } };
export default () => http.get('$url');
EOF
for users in 100 2500; do
    tool "k6, constant-arrival-rate, $users users" k6 run --quiet -e "USERS=$users" "$dir/k6.js"
done
tool "h2load --rps" h2load --h1 -c 100 -t1 -D 10 --rps=20 "$url"
