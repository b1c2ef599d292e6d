#!/bin/busybox sh
# The first process of a machine: makes the files of the machine that started it its own, read-only, and runs what
# the share "work" says for the name that stands on the kernel's command line.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
for module in $($b cat /modules/order); do $b insmod "/modules/$module" || echo "no $module"; done
share() { $b mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose "$1" "$2"; }
share root /root || $b poweroff -f
for fs in proc:/proc sysfs:/sys devtmpfs:/dev cgroup2:/sys/fs/cgroup tracefs:/sys/kernel/tracing tmpfs:/run tmpfs:/tmp tmpfs:/dev/shm tmpfs:/var/lib; do
	$b mkdir -p "/root${fs#*:}" 2>/dev/null
	$b mount -t "${fs%:*}" "${fs%:*}" "/root${fs#*:}"
done
$b mkdir -p /root/dev/pts
$b mount -t devpts pts /root/dev/pts
share work /root/mnt
name=$($b sed 's/.*machine=\([a-z]*\).*/\1/' /proc/cmdline)
$b hostname "$name"
$b chroot /root /bin/sh /mnt/machine.sh "$name"
$b poweroff -f
