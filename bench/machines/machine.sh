# What a machine is: an sshd, and nginx (web), PHP-FPM (app) or PostgreSQL (db). $1 is its name.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
chmod 1777 /tmp /dev/shm
ip link set lo up
case $1 in web) a=2 ;; app) a=3 ;; *) a=4 ;; esac
ip address add 10.79.1.$a/24 dev eth0
ip link set eth0 up
mkdir -p /run/sshd /run/service /tmp/php
mount --bind /mnt/shadow /etc/shadow
echo "+cpu +memory" >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/service
# serve becomes the service, in its control group.
serve() { echo 0 >/sys/fs/cgroup/service/cgroup.procs; exec "$@"; }
case $1 in
web)
	nft 'table inet lab { chain input { type filter hook input priority 0; ct state new accept; }; }'
	cp /mnt/nginx.conf /run/service/
	serve nginx -c /run/service/nginx.conf &
	;;
app)
	cp /mnt/php-fpm.conf /run/service/
	serve "$(ls /usr/sbin/php-fpm* | tail -n 1)" -n -R -F -y /run/service/php-fpm.conf &
	;;
db)
	mkdir -p /run/postgresql
	chown postgres /run/postgresql
	cp -a /mnt/db /var/lib/db
	serve setpriv --reuid postgres --regid postgres --init-groups /mnt/bin/postgres -D /var/lib/db -c listen_addresses=10.79.1.4 -c max_wal_senders=0 >>/tmp/postgres.log 2>&1 &
	until ss -ltn | grep -q :5432; do sleep 0.2; done
	;;
esac
/usr/sbin/sshd -f /mnt/sshd_config -E /tmp/sshd.log
echo "@ ready $1"
while :; do sleep 1000; done
