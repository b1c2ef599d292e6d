# What makes the server a machine of its own, in a mount namespace that nobody else sees: it has another boot id, a
# journal of its own, a lock of its own, and nothing in its memory file systems. $1 is where that lies.
set -e
mkdir -p /run/sshd /run/plimsoll /run/user
mount --bind "$1/shadow" /etc/shadow
mount --bind "$1/lib" /var/lib
mount --bind "$1/run/plimsoll" /run/plimsoll
mount --bind "$1/run/user" /run/user
mount --bind "$1/boot_id" /proc/sys/kernel/random/boot_id
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777,noexec tmpfs /tmp
exec /usr/sbin/sshd -D -f "$1/sshd_config" -E "$1/sshd.log"
