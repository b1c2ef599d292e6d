# What a change of Plimsoll's could have changed on a machine, one a line: the kernel's settings, files of services, listen queues, limits.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
sysctl -a 2>/dev/null | grep -v '^fs.*-\(nr\|state\)\|random\|pty.nr\|ns_last_pid\|nf_conntrack_count\|fs.aio-nr\|drop_caches\|base_runtime\|numa_\|nr_dying'
sha256sum /run/service/*
ls -l /run/service
ss -ltnH | awk '{ print "listens", $4, $3 }' | sort
for name in nginx php-fpm; do
	pid=$(pgrep -o $name) && sed "s/^/$name /" "/proc/$pid/limits" && echo "$name $(nice -n 0 ps -o ni=,cls= -p "$pid") $(taskset -p "$pid" | sed 's/.*: //')"
done
echo "quota $(cat /sys/fs/cgroup/service/cpu.max)"
cat /sys/class/net/*/tx_queue_len /sys/class/net/*/queues/rx-*/rps_cpus
