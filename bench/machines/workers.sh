#!/bin/bash
# bench/machines/workers.sh PLIMSOLL [CASE…]: one load is played from three machines over OpenSSH, each a network namespace with an sshd
# and a boot id of its own, and one look on the server's wire is held against what Plimsoll says. CASE is
#
#   starts   17 loads of a second: how far apart the three begin, and whether what is said of their clocks is true: they have one clock
#   equal    3 runs from three and 3 from one by turns, of the same schedule: does compare find a difference, and is no request too many
#   killed   one of three is killed in the middle: is it said, and what is counted up to then
#
# A line for each says what came of it; the exit code is 1 if one is not as docs/elsewhere.md has it. KEEP=DIR keeps all in there, and has what
# is there of earlier calls count, too. All take some five minutes; they want a machine that does nothing else.
set -u
plimsoll=$(realpath "$1")
shift
skip() { echo "workers: skipped: $*"; exit 0; }
test "$(id -u)" = 0 || skip 'network namespaces take root'
for tool in /usr/sbin/sshd nginx tcpdump python3; do
	PATH=$PATH:/usr/sbin command -v $tool >/dev/null || skip "$tool is not here; scripts/install-deps tests, and apt-get install tcpdump"
done
dir=${KEEP:-$(mktemp -d)} ns=plimsoll-gen-$$ failed=0 rate=300
mkdir -p "$dir"
end() {
	for one in $ns-near $ns-srv $ns-{1,2,3}; do
		ip netns pids "$one" 2>/dev/null | xargs -r kill -9
		ip netns delete "$one" 2>/dev/null
	done
	test -n "${KEEP-}" || rm -rf "$dir"
}
trap end EXIT
trap 'exit 1' INT TERM

# plug NAME ADDRESS: a namespace on the bridge.
plug() {
	ip netns add "$ns-$1"
	ip -n "$ns-$1" link set lo up
	ip link add l0 netns "$ns-$1" type veth peer name "p$1" netns $ns-near
	ip -n $ns-near link set "p$1" master br0 up
	ip -n "$ns-$1" address add "10.79.3.$2/24" dev l0
	ip -n "$ns-$1" link set l0 up
}
set -e
ip netns add $ns-near
ip -n $ns-near link set lo up
ip -n $ns-near link add br0 type bridge
ip -n $ns-near address add 10.79.3.1/24 dev br0
ip -n $ns-near link set br0 up
plug srv 2
rm -f "$dir"/{host,id,config,known}*
mkdir -p "$dir/bin" /run/sshd
for key in host id; do ssh-keygen -q -t ed25519 -N '' -C '' -f "$dir/$key"; done
{ echo 'root:*:19000:0:99999:7:::'; tail -n +2 /etc/shadow; } >"$dir/shadow"
chmod 600 "$dir/shadow"
for k in 1 2 3; do
	plug $k 1$k
	echo "c0ffee00-0000-4000-8000-00000000000$k" >"$dir/boot_id$k"
	printf 'HostKey %s/host\nAuthorizedKeysFile %s/id.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n' "$dir" "$dir" >"$dir/sshd_config"
	printf 'Host g%s\nHostName 10.79.3.1%s\n' $k $k >>"$dir/config"
	echo "10.79.3.1$k $(cat "$dir/host.pub")" >>"$dir/known"
	# shellcheck disable=SC2016
	ip netns exec $ns-$k unshare --mount --propagation private sh -ec 'mount --bind "$0/shadow" /etc/shadow
		mount --bind "$0/boot_id$1" /proc/sys/kernel/random/boot_id
		exec /usr/sbin/sshd -f "$0/sshd_config" -E "$0/log$1"' "$dir" $k
done
printf 'Host *\nUser root\nIdentityFile %s/id\nIdentitiesOnly yes\nUserKnownHostsFile %s/known\nStrictHostKeyChecking yes\n' "$dir" "$dir" >>"$dir/config"
printf '#!/bin/sh\nexec ip netns exec %s /usr/bin/ssh -F %s/config "$@"\n' $ns-near "$dir" >"$dir/bin/ssh"
chmod +x "$dir/bin/ssh"
export PATH=$dir/bin:$PATH
cat >"$dir/nginx.conf" <<-EOF2
	user root; daemon off; pid $dir/nginx.pid; error_log $dir/error.log; worker_processes 1;
	events { worker_connections 1024; }
	http { access_log off; keepalive_requests 1000000; server { listen 10.79.3.2:80; location / { return 200 "hello\n"; } } }
EOF2
(ip netns exec $ns-srv nginx -c "$dir/nginx.conf" 2>"$dir/own" &)
until ip netns exec $ns-near bash -c '</dev/tcp/10.79.3.2/80' 2>/dev/null; do sleep 0.1; done
set +e

# look begins to take the time of each request that comes to the server, by the kernel's clock; looked ends that.
look() {
	ip netns exec $ns-srv tcpdump --immediate-mode -q -i l0 -nn -U -B 16384 -w "$dir/$1.pcap" 'tcp dst port 80 and tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420' 2>"$dir/tcpdump" &
	looker=$!
	until grep -q listening "$dir/tcpdump"; do sleep 0.1; done
}
looked() {
	sleep 0.3
	kill -INT $looker
	wait $looker
	grep -q '^0 packets dropped' "$dir/tcpdump" || { cat "$dir/tcpdump"; failed=1; }
	tcpdump -r "$dir/$1.pcap" -nn -tt -q 2>/dev/null | awk '{ split($3, a, "."); print $1, a[4] - 10 }' >"$dir/$1.requests"
}
# tell CASE CODE TEXT: one line; a CODE that is not 0 is a failure.
tell() { if test "$2" = 0; then echo "$1: ok: $3"; else echo "$1: FAILED: $3"; failed=1; fi; }
three='--from g1=ssh:g1 --from g2=ssh:g2 --from g3=ssh:g3'
judge() { python3 "$(dirname "$0")/workers.py" "$1" "$dir" $rate; }
play() { ip netns exec $ns-near env "PATH=$PATH" "$plimsoll" "$@"; }

starts() {
	local text i
	for _ in $(seq 17); do
		i=$EPOCHSECONDS
		look starts$i
		play load http://10.79.3.2/ -R $rate -c 12 -d 1s $three --json >"$dir/starts$i.json" 2>"$dir/err" || { cat "$dir/err"; failed=1; }
		looked starts$i
	done
	text=$(judge starts)
	tell starts $? "$text"
}
equal() {
	local text i one='--from g1=ssh:g1 --host g2=ssh:g2 --host g3=ssh:g3'
	for _ in $(seq 3); do
		for of in one three; do
			i=$EPOCHSECONDS
			look $of$i
			play run http://10.79.3.2/ -R $rate -c 12 -d 15s --baseline 2s --calm 0 --ramp 0 --cool 1s --trace off ${!of} --dir "$dir/$of/$i" --json >"$dir/$of$i.json" 2>"$dir/err" || { cat "$dir/err"; failed=1; }
			looked $of$i
		done
	done
	"$plimsoll" compare "$dir/one" "$dir/three" >"$dir/compare"
	local said=$?
	text=$(judge equal) && test $said = 0
	tell equal $? "$text; compare ended with $said: $(head -n 3 "$dir/compare" | tr '\n' ' ')"
}
killed() {
	local text
	look killed
	play load http://10.79.3.2/ -R $rate -c 12 -d 10s $three --json >"$dir/killed.json" 2>"$dir/err" &
	local load=$!
	until test -s "$dir/killed.pcap" && tcpdump -r "$dir/killed.pcap" 2>/dev/null | grep -q GET; do sleep 0.1; done
	sleep 4.4
	for pid in $(ip netns pids $ns-2); do
		if tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q 'plimsoll guest load-engine'; then kill -9 "$pid"; fi
	done
	wait $load
	local code=$?
	looked killed
	text=$(judge killed) && test $code = 1
	tell killed $? "exit code $code; $text; $(tail -n 1 "$dir/err")"
}

test $# -gt 0 || set -- starts equal killed
for case in "$@"; do $case; done
exit $failed
