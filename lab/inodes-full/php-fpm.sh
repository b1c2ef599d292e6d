#!/bin/sh
set -e
mkdir -p {{.dir}}/store
mount -t tmpfs -o size=64m,nr_inodes={{.inodes}},mode=1777 store {{.dir}}/store
for f in /usr/sbin/php-fpm[0-9]* /usr/sbin/php-fpm; do [ -x "$f" ] && exec "$f" --nodaemonize --fpm-config {{.dir}}/php-fpm.conf; done
