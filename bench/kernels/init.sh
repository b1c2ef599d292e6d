#!/bin/busybox sh
# The first process in the machine: makes this machine's files its own, with a disk for
# what is written, and runs inside.sh there.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t devtmpfs dev /dev
for module in $($b cat /modules/order); do $b insmod "/modules/$module"; done
share() { $b mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose "$1" "$2"; }
share root /lower || $b poweroff -f
$b mount -t ext4 /dev/vda /disk
$b mkdir /disk/upper /disk/work /disk/tmp
$b chmod 1777 /disk/tmp
$b mount -t overlay -o lowerdir=/lower,upperdir=/disk/upper,workdir=/disk/work overlay /root || $b poweroff -f
$b mount -t proc proc /root/proc
$b mount -t sysfs sys /root/sys
$b mount -t devtmpfs dev /root/dev
$b mkdir -p /root/dev/pts /root/dev/shm
$b mount -t devpts pts /root/dev/pts
$b mount -t tmpfs shm /root/dev/shm
$b mount -t cgroup2 cgroup2 /root/sys/fs/cgroup
$b mount -t tracefs tracefs /root/sys/kernel/tracing
$b mount -t bpf bpf /root/sys/fs/bpf
$b mount --bind /disk/tmp /root/tmp
$b mount -t tmpfs run /root/run
share work /root/mnt
share tracers /root/media
$b ip link set lo up
$b stty raw </dev/ttyS1
$b chroot /root /bin/sh /mnt/inside.sh /mnt /media >/dev/ttyS1
$b sync
$b poweroff -f
