# What makes the server a machine of its own, in a mount namespace that nobody else sees: it has another boot id, a
# journal of its own, a lock of its own, and nothing in its memory file systems. $1 is where that lies.
set -e
mount --bind "$1/shadow" /etc/shadow
mount --bind "$1/lib" /var/lib
mount --bind "$1/boot_id" /proc/sys/kernel/random/boot_id
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777,noexec tmpfs /tmp
# Its /run is made aside, so that nothing is left in the real one; the case's files, in which $1 is, and the names of network
# namespaces are in it.
mkdir /tmp/run
mount -t tmpfs -o mode=755 tmpfs /tmp/run
mkdir /tmp/run/sshd /tmp/run/plimsoll /tmp/run/user
case=$(dirname "$1")
for shared in "$case" /run/netns; do
	mkdir -p "/tmp$shared"
	mount --rbind "$shared" "/tmp$shared"
done
mount -n --move /tmp/run /run
rmdir /tmp/run
exec /usr/sbin/sshd -D -f "$1/sshd_config" -E "$1/sshd.log"
