#!/bin/bash
# bench/links.sh PLIMSOLL [CASE…]: a host is watched over a real ssh, on a link between two network namespaces that is slow, narrow,
# cut or worse. A line for each case says what came of it; the exit code is 1 if one is not as docs/elsewhere.md has it. CASE is one of
#
#   plain far narrow cut30 cut300 startups killed farkilled
#
# and, where nothing else runs, cost300 and cost3000: what it costs to watch a machine of so many processes, most of them asleep, with the light tracers,
# in bytes on the link and in CPU time; with zip behind it (cost300zip) ssh compresses, as `Compression yes` in its configuration has it.
#
# All of them take some 15 minutes, most of it the cut of five minutes and the program's way through 1 Mbit/s.
set -u
plimsoll=$(realpath "$1")
shift
test "$(id -u)" = 0 || { echo 'links: skipped: network namespaces take root'; exit 0; }
test -x /usr/sbin/sshd || { echo 'links: skipped: there is no sshd; scripts/install-deps tests brings it'; exit 0; }
dir=$(mktemp -d) near=plimsoll-near-$$ far=plimsoll-far-$$ failed=0
end() {
	for ns in $near $far; do
		ip netns pids $ns 2>/dev/null | xargs -r kill -9
		ip netns delete $ns 2>/dev/null
	done
	rm -rf "$dir"
}
trap end EXIT
trap 'exit 1' INT TERM

ip netns add $near && ip netns add $far && ip link add l0 netns $near type veth peer name l0 netns $far || exit 1
ip -n $near address add 10.79.2.1/24 dev l0
ip -n $far address add 10.79.2.2/24 dev l0
for ns in $near $far; do
	ip -n $ns link set lo up
	ip -n $ns link set l0 up
done
mkdir -p "$dir/bin" "$dir/sent" /run/sshd
for key in host id; do ssh-keygen -q -t ed25519 -N '' -C '' -f "$dir/$key"; done
{ echo 'root:*:19000:0:99999:7:::'; tail -n +2 /etc/shadow; } >"$dir/shadow"
chmod 600 "$dir/shadow"
echo c0ffee00-0000-4000-8000-000000000007 >"$dir/boot_id"
echo "far $(cat "$dir/host.pub")" >"$dir/known"
cat >"$dir/sshd_config" <<-EOF
	HostKey $dir/host
	AuthorizedKeysFile $dir/id.pub
	StrictModes no
	UsePAM no
	PermitRootLogin yes
	ListenAddress 10.79.2.2
	PidFile none
	SetEnv XDG_RUNTIME_DIR=$dir/sent
EOF
printf 'Host far\nHostName 10.79.2.2\nHostKeyAlias far\nUser root\nIdentityFile %s/id\nIdentitiesOnly yes\nUserKnownHostsFile %s/known\n' "$dir" "$dir" >"$dir/config"
printf '#!/bin/sh\nexec ip netns exec %s /usr/bin/ssh -F %s/config "$@"\n' $near "$dir" >"$dir/bin/ssh"
chmod +x "$dir/bin/ssh"
export PATH=$dir/bin:$PATH

# login OPTIONS: an sshd that is another machine's, for one case.
login() {
	ip netns exec $far unshare --mount ${own-} --propagation private sh -ec '
		mount --bind "$0/shadow" /etc/shadow
		mount --bind "$0/boot_id" /proc/sys/kernel/random/boot_id
		exec /usr/sbin/sshd -f "$0/sshd_config" -E "$0/log" "$@"' "$dir" "$@"
}
# shape WORDS: what the link does to each packet, on both ways.
shape() { for ns in $near $far; do tc -n $ns qdisc replace dev l0 root "$@" || exit 1; done; }
watch() { "$plimsoll" watch -d "$1" --interval 1s --trace off --host web=ssh:far --dir "$dir/run" -v >"$dir/out" 2>"$dir/err"; }
# held waits until the host is watched.
held() { until grep -q '"name": "hold"' "$dir/run/run.json" 2>/dev/null; do kill -0 "$1" 2>/dev/null || return 1; sleep 0.2; done; }
rounds() { "$plimsoll" export "$dir/run" --csv 2>/dev/null | grep -c ',node_procs_running,'; }
of() { grep -o "\"$1\": [0-9.]*" "$dir/run/run.json" | tail -n 1 | grep -o '[0-9.]*$'; }
guests() { ip netns pids $far | xargs -r ps -o args= -p | grep -c '[g]uest collector'; }
left() { echo "$(guests) processes, $(find "$dir/sent" -mindepth 1 | wc -l) files"; }
# tell CASE TEXT CONDITION…: one line; a condition that does not hold is a failure.
tell() {
	local name=$1 text=$2 as=ok
	shift 2
	"$@" || as=FAILED failed=1
	echo "$name: $as: $text"
	test $as = ok || tail -n 5 "$dir/out" "$dir/err" "$dir/own"
}
whole() { ! grep -q '"cut"\|"dropped_samples"' "$dir/run/run.json" && test "$(rounds)" -ge "$1" && test "$(left)" = '0 processes, 0 files'; }
seen() { echo "$(rounds) rounds in $SECONDS s, clock known to $(of uncertainty_ms) ms, $(of sent_bytes) bytes there, $(of received_bytes) back, left: $(left)"; }

plain() { login; watch 10s; tell plain "$(seen)" whole 10; }
far() {
	tc -n $near qdisc replace dev l0 root netem delay 100ms || { echo 'far: skipped: this kernel has no netem; bench/machines/run.sh has a case of that name'; return 0; }
	login
	shape netem delay 100ms limit 10000
	watch 10s
	tell "far (200 ms there and back)" "$(seen)" whole 10
}
narrow() { login; shape tbf rate 1mbit burst 16kb latency 400ms; watch 20s; tell "narrow (1 Mbit/s)" "$(seen)" whole 20; }
interrupted() { # SECONDS
	watch "$(($1 + 60))s" & local run=$!
	held $run
	ip -n $far link set l0 down
	sleep "$1"
	ip -n $far link set l0 up
	wait $run
}
cut30() { login; interrupted 30; tell 'cut for 30 s' "$(seen)" whole 85; }
gone() { grep -q 'nothing was heard for 2m' "$dir/run/run.json" && grep -q 'not to the end' "$dir/run/run.json" && test "$(left)" = '0 processes, 0 files'; }
cut300() { login; interrupted 300; tell 'cut for 5 min' "the part ends after two minutes of silence, and is said not to be seen; $(seen)" gone; }
startups() {
	login -o MaxStartups=1
	ip netns exec $near bash -c 'exec 3<>/dev/tcp/10.79.2.2/22; head -c 4 <&3; sleep 100' >"$dir/taken" & local other=$!
	until grep -q SSH "$dir/taken"; do sleep 0.1; done
	watch 5s
	local code=$?
	kill $other
	tell 'MaxStartups reached' "exit $code: $(tail -n 1 "$dir/err")" grep -q MaxStartups "$dir/err"
}
nothing() { for _ in $(seq 100); do test "$(left)" = '0 processes, 0 files' && return 0; sleep 0.1; done; return 1; }
killed() {
	login
	"$plimsoll" watch -d 300s --trace off --host web=ssh:far --dir "$dir/run" >"$dir/out" 2>"$dir/err" & local run=$!
	held $run
	kill -9 $run
	wait $run 2>/dev/null
	local from=${EPOCHREALTIME/./}
	nothing
	tell 'client killed' "$(((${EPOCHREALTIME/./} - from) / 1000)) ms later there are $(left)" test "$(left)" = '0 processes, 0 files'
}
farkilled() {
	login
	watch 300s & local run=$!
	held $run
	for pid in $(ip netns pids $far); do
		if tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q 'plimsoll guest collector'; then kill -9 "$pid"; fi
	done
	wait $run
	tell 'far side killed' "$(grep -o '"cut": .*' "$dir/run/run.json"); left: $(left)" gone_now
}
gone_now() { grep -q '"cut"' "$dir/run/run.json" && nothing; }

bytes() { ip -n $far -s link show l0 | awk 'prev ~ /RX:|TX:/ { n += $1 } { prev = $1 } END { print n }'; }
used() { # NAMESPACE TEXT: hundredths of a second of CPU that processes have used in whose command the text stands
	for pid in $(ip netns pids "$1" | xargs -r ps -o pid=,args= -p | awk -v text="$2" 'index($0, text) { print $1 }'); do
		sed 's/.*) //' "/proc/$pid/stat"
	done 2>/dev/null | awk '{ n += $12 + $13 } END { print n + 0 }'
}
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; } # PID: hundredths of a second of CPU
cost() { # PROCESSES OPTION
	own='--pid --fork --kill-child --mount-proc' login -D -o Compression=yes &
	until ip netns exec $near bash -c '</dev/tcp/10.79.2.2/22' 2>/dev/null; do sleep 0.1; done
	local init pid
	for pid in $(ip netns pids $far); do grep -q '^NSpid:.*[[:space:]]1$' "/proc/$pid/status" && init=$pid; done
	nsenter -t "$init" -p -n bash -c "for _ in \$(seq $1); do sleep 100000 & done"
	test "$(ip netns pids $far | wc -l)" -ge "$1" || { echo "cost: there are no $1 processes to be watched"; return 1; }
	printf '%s\n' "$2" >>"$dir/config"
	"$plimsoll" watch -d 30s --interval 1s --host web=ssh:far --dir "$dir/run" -v >"$dir/out" 2>"$dir/err" & local run=$!
	held $run || return 1
	local b0 s0 p0
	sleep 5
	s0=$(used $far sshd:)
	p0=$(ticks "$run")
	b0=$(bytes)
	sleep 20
	local b=$((($(bytes) - b0) / 20))
	local s=$(($(used $far sshd:) - s0)) p=$(($(ticks "$run") - p0)) h=$(used $near /usr/bin/ssh)
	wait $run
	tell "$1 processes${2:+, $2}" "$b bytes a second on the link; in 30 s: $(of cpu_seconds) s of CPU there, and $s hundredths of its sshd in 20 s, $p of Plimsoll here, $h of ssh here in all; $(of max_rss_bytes) bytes of memory" test "$b" -lt 1250000
}
cost300() { cost 300 ''; }
cost3000() { cost 3000 ''; }
cost300zip() { cost 300 'Compression yes'; }
cost3000zip() { cost 3000 'Compression yes'; }

test $# -gt 0 || set -- plain far narrow cut30 cut300 startups killed farkilled
for case in "$@"; do
	rm -rf "$dir/run" "$dir/out" "$dir/err" "$dir/taken"
	SECONDS=0
	$case 2>"$dir/own" || { echo "$case: ended with $?"; failed=1; }
	ip netns pids $far | xargs -r kill -9
	shape pfifo limit 1000
	rm -rf "$dir/sent"/.plimsoll.*
done
exit $failed
