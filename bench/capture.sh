#!/bin/bash
# How many packets a second does "plimsoll capture" read, in how much memory, beside
# tshark, tcptrace and capinfos?
#
#   bench/capture.sh [-r ROUNDS] [-k FILE] [PLIMSOLL]
#
# Makes a capture of some 1.8 million packets, unless FILE (which it keeps) is
# there already: nginx and wrk in two namespaces, a veth pair without offloads, 0.3 %
# of the packets lost each way, tcpdump on the server's side for 30 s. Then each
# tool reads it from the page cache, pinned to CPU 0, in turns; printed are packets for
# each second of CPU time, the median and the best of ROUNDS (5), and the largest memory. tshark needs minutes and
# gigabytes: it reads the first 300,000 packets, once. It needs root, ip, nft, nginx, wrk,
# tcpdump, editcap, tshark, tcptrace, capinfos and GNU time, and a quiet machine.
set -euo pipefail

rounds=5 keep=
while getopts r:k: option; do
	case $option in
	r) rounds=$OPTARG ;;
	k) keep=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
plimsoll=${1:-bin/plimsoll}
for tool in ip nft ethtool nginx wrk tcpdump editcap tshark tcptrace capinfos /usr/bin/time "$plimsoll"; do
	command -v "$tool" >/dev/null || { echo "capture.sh: $tool is not here: install or build it" >&2; exit 1; }
done

dir=$(mktemp -d)
server=plimsoll-bench-s$$ client=plimsoll-bench-c$$
there=
leave() {
	[ "$there" ] || return 0
	for host in $server $client; do
		ip netns pids "$host" 2>/dev/null | xargs -r kill 2>/dev/null || true
	done
	wait || true
	ip netns delete "$server" 2>/dev/null || true
	ip netns delete "$client" 2>/dev/null || true
	there=
}
trap 'leave; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
chmod 755 "$dir"

hosts() {
	there=yes
	ip netns add "$server"
	ip netns add "$client"
	ip link add veth0 netns "$server" type veth peer name veth0 netns "$client"
	local n=1 host
	for host in $server $client; do
		ip -n "$host" addr add 10.77.0.$n/24 dev veth0
		ip -n "$host" link set veth0 up
		ip -n "$host" link set lo up
		ip netns exec "$host" ethtool -K veth0 tso off gso off gro off tx off rx off >/dev/null 2>&1 || true
		ip netns exec "$host" nft -f - <<-END
			table inet loss {
				chain in {
					type filter hook input priority 0;
					numgen random mod 1000 < 3 drop
				}
			}
		END
		n=$((n + 1))
	done
}

record() { # FILE
	head -c 1024 /dev/zero | tr '\0' x >"$dir/1k"
	head -c 20480 /dev/zero | tr '\0' x >"$dir/20k"
	cat >"$dir/nginx.conf" <<-END
		worker_processes 1;
		daemon off;
		pid $dir/nginx.pid;
		error_log $dir/error.log;
		events { worker_connections 4096; }
		http {
			access_log off;
			keepalive_requests 100000000;
			server { listen 10.77.0.1:80; root $dir; }
		}
	END
	hosts
	ip netns exec "$server" nginx -p "$dir" -c "$dir/nginx.conf" &
	ip netns exec "$server" tcpdump -q -Z root -i veth0 -B 65536 -w "$1" tcp port 80 2>"$dir/tcpdump.log" &
	local dump=$!
	until grep -q listening "$dir/tcpdump.log" 2>/dev/null; do sleep 0.1; done
	ip netns exec "$client" wrk -t1 -c20 -d30 http://10.77.0.1/20k >/dev/null &
	local small=$!
	ip netns exec "$client" wrk -t1 -c200 -d30 http://10.77.0.1/1k >/dev/null
	wait "$small"
	kill "$dump"
	wait "$dump" || true
	leave
}

# timed COMMAND...: seconds of CPU time and KiB of one run on CPU 0.
timed() {
	taskset -c 0 /usr/bin/time -o "$dir/time" -f '%U %S %M' "$@" >"$dir/out" 2>"$dir/err" || true
	tail -1 "$dir/time" | awk '{ print $1 + $2, $3 }'
}

# row NAME PACKETS < lines of seconds and KiB
row() {
	sort -n | awk -v name="$1" -v n="$2" '{ s[NR] = $1; if ($2 > m) m = $2 }
		END { printf "%-44s %10.0f %10.0f %8.1f\n", name, n / s[int((NR + 1) / 2)], n / s[1], m / 1024 }'
}

file=${keep:-$dir/capture.pcap}
[ -s "$file" ] || record "$file"
cat "$file" >/dev/null
packets=$(capinfos -Mc "$file" | awk '/Number of packets/ { print $NF }')
printf '%s packets, %s bytes\n' "$packets" "$(stat -c %s "$file")"
printf '%-44s %10s %10s %8s\n' 'packets for a second of CPU' median best MiB
for ((i = 0; i < rounds; i++)); do
	timed env GOMAXPROCS=1 "$plimsoll" capture "$file" >>"$dir/plimsoll"
	timed env GOMAXPROCS=1 "$plimsoll" capture "$file" --labels tsv >>"$dir/labels"
	timed capinfos -c "$file" >>"$dir/capinfos"
	timed tcptrace -n -l -r "$file" >>"$dir/tcptrace"
done
row 'plimsoll capture' "$packets" <"$dir/plimsoll"
row 'plimsoll capture --labels tsv' "$packets" <"$dir/labels"
row 'capinfos -c' "$packets" <"$dir/capinfos"
row 'tcptrace -n -l -r' "$packets" <"$dir/tcptrace"
few=$((packets < 300000 ? packets : 300000))
editcap -r "$file" "$dir/few.pcap" 1-$few
timed tshark -r "$dir/few.pcap" -q -z expert >"$dir/tshark"
row "tshark -q -z expert ($few packets)" "$few" <"$dir/tshark"
