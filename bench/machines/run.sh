#!/bin/bash
# bench/machines/run.sh PLIMSOLL CASE [DIR]: machines, each emulated by qemu with a kernel of its own: a client here, nginx on
# "web", PHP-FPM on "app", in some cases PostgreSQL on "db", each reached by ssh. One fault is made there, one run is judged, and all is
# taken away. CASE is
#
#   quota       a CPU quota on PHP-FPM's control group, on app
#   conntrack   a table of connections that is full, on web
#   loss        a tenth of what app sends is lost on its link
#   healthy     nothing
#   far         200 ms to each machine and back: only watched
#   old         nothing, with a kernel of Debian 12: only watched
#   clock       app's clock is an hour ahead from the start, and set back in the middle: only watched
#   postgres    PostgreSQL takes eight connections, and eight sessions that do nothing have them, on db
#   lock        each request holds the lock of one row of PostgreSQL's, on db, while it waits for something else
#   chain       four limits one behind the other: a table of connections, ports to app, a listen queue, all on web, and FPM's workers on
#               app. "tune --apply" goes through them, "undo" takes everything back; the state before and after is compared
#   clocks      both clocks are set, eight times (TIMES), and what is said of them is held against an exchange of 500 packets before and after
#
# The run stays in DIR. The kernel is one that `go run ./bench/kernels -o /dev/null 6.12` fetched into ~/.cache/plimsoll-kernels.
# It ends with 1 where that verdict is not the case's truth, its root or the machine that it names, or where something was not taken back.
# Causes here hang on no timing: emulated, all is slow. It takes some two minutes, chain and clocks
# up to ten, if there is nothing else to do.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plimsoll=$(realpath "$1") case=$2 out=$(realpath -m "${3:-$(mktemp -d)}")
mkdir -p "$out"
cd / # where PostgreSQL's user may be, too
skip() { echo "machines: skipped: $*"; exit 0; }
for tool in qemu-system-x86_64 busybox modprobe xz sshd nginx tc; do
	PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null || skip "$tool is not here; apt-get install qemu-system-x86 busybox-static kmod xz-utils, and scripts/install-deps tests"
done
of=6.12
test "$case" != old || of=6.1
kernel=$(ls -d "${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll-kernels/kernels/linux-image-$of."*-amd64-amd64 2>/dev/null | tail -n 1)
test -n "$kernel" || skip "there is no kernel; go run ./bench/kernels -o /dev/null $of fetches one"
modules=$kernel/usr
test -d "$modules/lib/modules" || modules=$kernel
release=$(basename "$kernel/boot/"vmlinuz-* | sed 's/^vmlinuz-//')
test "$(id -u)" = 0 || skip 'network namespaces take root'

names='web app'
case $case in postgres | lock) names='web app db' ;; esac
work=$(mktemp -d) ns=plimsoll-machines-$$ machines=
end() {
	for pid in $machines; do kill "$pid" 2>/dev/null || true; done
	wait
	ip netns pids $ns 2>/dev/null | xargs -r kill -9
	ip netns delete $ns 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT
trap 'exit 1' INT TERM

# pack makes the first file system: busybox, and the modules in the order in which they are loaded.
pack() {
	mkdir -p "$work/first"/{bin,proc,sys,dev,root,modules}
	cp "$(command -v busybox)" "$work/first/bin/"
	cp "$here/init.sh" "$work/first/init"
	chmod +x "$work/first/init"
	for module in virtio_pci virtio_net 9p 9pnet_virtio tcp_diag inet_diag unix_diag nf_conntrack nf_tables nft_ct nft_counter sch_netem; do
		modprobe -d "$modules" -S "$release" --show-depends $module 2>/dev/null | sed -n 's/^insmod \([^ ]*\).*/\1/p'
	done | awk '!seen[$0]++' | while read -r path; do
		name=$(basename "$path" .xz)
		case $path in *.xz) xz -dc "$path" ;; *) cat "$path" ;; esac >"$work/first/modules/$name"
		echo "$name" >>"$work/first/modules/order"
	done
	(cd "$work/first" && find . | busybox cpio -o -H newc 2>/dev/null) >"$work/initramfs"
}

# keys makes what ssh and sshd need: machines of this script know nobody else.
keys() {
	mkdir -p "$work/share" "$work/bin"
	chmod 711 "$work" # as PostgreSQL's user makes its files in it
	cp "$here"/{machine.sh,state.sh,nginx.conf,index.php,php-fpm.conf,echo.py} "$work/share/"
	for key in host id; do ssh-keygen -q -t ed25519 -N '' -C '' -f "$work/share/$key"; done
	{ echo 'root:*:19000:0:99999:7:::'; tail -n +2 /etc/shadow; } >"$work/share/shadow"
	printf '%s\n' 'HostKey /mnt/host' 'AuthorizedKeysFile /mnt/id.pub' 'StrictModes no' 'UsePAM no' 'PermitRootLogin yes' 'SetEnv HOME=/tmp' >"$work/share/sshd_config"
	for machine in web:2 app:3 db:4; do
		printf 'Host %s\nHostName 10.79.1.%s\n' "${machine%:*}" "${machine#*:}"
		echo "10.79.1.${machine#*:} $(cat "$work/share/host.pub")" >>"$work/known"
	done >"$work/config"
	printf 'Host *\nUser root\nIdentityFile %s/share/id\nIdentitiesOnly yes\nUserKnownHostsFile %s/known\nStrictHostKeyChecking yes\n' "$work" "$work" >>"$work/config"
	printf '#!/bin/sh\nexec /usr/bin/ssh -F %s/config "$@"\n' "$work" >"$work/bin/ssh"
	chmod +x "$work/bin/ssh"
}

# weaken has the services' settings be those of the case.
weaken() {
	case $case in
	chain)
		sed -i 's/backlog=511/backlog=10/; s/# keep_conn/fastcgi_keep_conn on; #/' "$work/share/nginx.conf"
		sed -i 's/= 16$/= 5/' "$work/share/php-fpm.conf"
		;;
	postgres | lock)
		local bin
		bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
		install -d -o postgres -m 700 "$work/share/db"
		setpriv --reuid postgres --regid postgres --init-groups "$bin/initdb" --auth-local peer --auth-host trust --username postgres --no-sync -D "$work/share/db" >/dev/null
		echo 'host all all 10.79.1.0/24 trust' >>"$work/share/db/pg_hba.conf"
		echo "max_connections = $(test "$case" = postgres && echo 8 || echo 50)" >>"$work/share/db/postgresql.conf"
		ln -s "$bin" "$work/share/bin"
		;;
	esac
}

boot() { # NAME MAC CLOCK
	ip netns exec $ns ip tuntap add dev "$1" mode tap
	ip -n $ns link set "$1" master br0 up
	ip netns exec $ns qemu-system-x86_64 -M pc -accel tcg,thread=multi -cpu max -smp 1 -m 1024 -nodefaults -nographic -no-reboot -rtc "base=$3" \
		-serial "file:$work/$1.log" -kernel "$kernel/boot/vmlinuz-$release" -initrd "$work/initramfs" -append "console=ttyS0 quiet no_timer_check panic=-1 tsc=reliable machine=$1" \
		-netdev "tap,id=n,ifname=$1,script=no,downscript=no" -device "virtio-net-pci,netdev=n,mac=$2" \
		-fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap -device virtio-9p-pci,fsdev=root,mount_tag=root \
		-fsdev "local,id=work,path=$work/share,security_model=none,readonly=on" -device virtio-9p-pci,fsdev=work,mount_tag=work >"$work/$1.qemu" 2>&1 &
	machines="$machines $!"
}

# on runs a command there, over a connection that lasts: a table of connections that is full lets no new one in.
on() { PATH=$work/bin:$PATH ip netns exec $ns ssh -o ControlMaster=auto -o "ControlPath=$work/on-%h" -o ControlPersist=yes "$1" "$2"; }
# state is what tune may have changed on both machines, and what could show it.
state() { for name in web app; do on $name 'sh /mnt/state.sh' | sed "s/^/$name: /"; done; }
hour=$(date -u -d '+1 hour' +%Y-%m-%dT%H:%M:%S)
pack
keys
weaken
ip netns add $ns
ip -n $ns link set lo up
ip -n $ns link add br0 type bridge
ip -n $ns address add 10.79.1.1/24 dev br0
ip -n $ns link set br0 up
boot web 52:54:00:00:00:02 utc
boot app 52:54:00:00:00:03 "$(test "$case" = clock && echo "$hour" || echo utc)"
case $names in *db) boot db 52:54:00:00:00:04 utc ;; esac
for name in $names; do
	until grep -q "@ ready $name" "$work/$name.log" 2>/dev/null; do
		for pid in $machines; do kill -0 "$pid" 2>/dev/null || { tail -n 20 "$work"/*.qemu "$work"/*.log >&2; exit 1; }; done
		sleep 0.2
	done
done
echo "machines: $names are up after $SECONDS s"

url='http://10.79.1.2/?us=20000' load='-c 8'
case $case in
quota) url='http://10.79.1.2/?us=0&turns=20000'; on app 'echo "10000 100000" >/sys/fs/cgroup/service/cpu.max' ;;
conntrack) load="$load --no-keepalive"; on web 'echo 60 >/proc/sys/net/netfilter/nf_conntrack_max' ;;
loss) on app 'tc qdisc add dev eth0 root netem loss 10%' ;;
healthy) load='-c 2' ;;
far) for name in web app; do on $name 'tc qdisc add dev eth0 root netem delay 200ms limit 10000'; done ;;
clock | old | clocks) ;;
postgres)
	url='http://10.79.1.2/?ask=once' load='-c 4 -R 6' # more would take the CPU: each connection is a process there
	on db 'for i in 1 2 3 4 5 6 7 8; do sleep 1000 | /mnt/bin/psql -qh 10.79.1.4 -U postgres & done >/dev/null 2>&1 </dev/null
		until test "$(ss -tnH state established sport = :5432 | wc -l)" = 8; do sleep 0.2; done'
	;;
lock)
	url='http://10.79.1.2/?ask=lock'
	on db "/mnt/bin/psql -qh 10.79.1.4 -U postgres -c 'CREATE TABLE counter AS SELECT 1 AS n'"
	;;
chain)
	url='http://10.79.1.2/?us=400000' load='-c 40 --no-keepalive --timeout 10s'
	on web 'sysctl -qw net.netfilter.nf_conntrack_max=60 net.core.somaxconn=10 net.ipv4.ip_local_port_range="20000 20050"'
	;;
*) echo "machines: no case $case" >&2; exit 2 ;;
esac
export PATH=$work/bin:$PATH
# begin starts a command in the client's namespace; ended waits for it, which a signal may cut short, and keeps its exit code.
begin() { ip netns exec $ns "$@" >"$out/out" 2>"$out/err" & begun=$!; }
ended() { wait $begun && code=0 || code=$?; }
case $case in
clock | far | old)
	begin "$plimsoll" watch -d 20s --trace off --host web=ssh:web --host app=ssh:app --dir "$out/run" -v
	until grep -q '"name": "hold"' "$out/run/run.json" 2>/dev/null; do kill -0 $begun; sleep 0.2; done
	test "$case" != clock || on app 'date -s "$(date -d "@$(($(date +%s) - 3600))" "+%Y-%m-%d %H:%M:%S")" >/dev/null'
	ended
	grep 'offset_ms\|uncertainty_ms\|clock was set\|"cut"\|"dropped_samples"' "$out/run/run.json"
	;;
chain)
	state >"$out/before"
	begin "$plimsoll" tune "$url" $load -d 8s --baseline 2s --calm 2s --ramp 1s --cool 0 --trace off --host web=ssh:web --host app=ssh:app --apply --dir "$out/run"
	ended
	echo "machines: chain: tuned after $SECONDS s"
	for name in web app; do ip netns exec $ns "$plimsoll" undo --all --host $name=ssh:$name; done
	state >"$out/after"
	same=0
	diff "$out/before" "$out/after" && echo "machines: chain: all is as it was ($(wc -l <"$out/after") settings, files, queues and limits)" || same=1
	;;
clocks)
	begin python3 "$here/clocks.py" "$plimsoll" "$work" "${TIMES:-8}"
	ended
	;;
*)
	hosts=
	for name in $names; do hosts="$hosts --host $name=ssh:$name"; done
	begin "$plimsoll" run "$url" $load -d 20s --baseline 3s --calm 3s --ramp 2s --cool 2s --trace off $hosts --dir "$out/run"
	ended
	;;
esac
echo "machines: $case: exit $code after $SECONDS s"
case $case in chain | clocks) cat "$out/out" ;; *) head -n 12 "$out/out" ;; esac
tail -n 3 "$out/err"
case $case in
clocks) exit $code ;;
esac
python3 "$here/truth.py" "$case" "$out/run" && test "$code" -le 1 && test "${same:-0}" = 0
