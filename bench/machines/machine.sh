# What a machine is: an sshd, and nginx (web) or PHP-FPM (app). $1 is its name.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
chmod 1777 /tmp /dev/shm
ip link set lo up
case $1 in web) a=2 ;; *) a=3 ;; esac
ip address add 10.79.1.$a/24 dev eth0
ip link set eth0 up
mkdir -p /run/sshd /tmp/php
mount --bind /mnt/shadow /etc/shadow
echo "+cpu +memory" >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/service
case $1 in
web)
	nft 'table inet lab { chain input { type filter hook input priority 0; ct state new accept; }; }'
	(echo 0 >/sys/fs/cgroup/service/cgroup.procs; exec nginx -c /mnt/nginx.conf) &
	;;
app)
	(echo 0 >/sys/fs/cgroup/service/cgroup.procs; exec "$(ls /usr/sbin/php-fpm* | tail -n 1)" -n -R -F -y /mnt/php-fpm.conf) &
	;;
esac
/usr/sbin/sshd -f /mnt/sshd_config -E /tmp/sshd.log
echo "@ ready $1"
while :; do sleep 1000; done
