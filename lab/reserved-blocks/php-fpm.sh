#!/bin/sh
# A file system for the uploads, four fifths full. In a mount namespace of its own, so that it goes with the service.
set -e
image={{.disk}}/uploads/image
truncate -s 64M "$image"
mkfs.ext4 -q -F -m {{.reserved}} "$image"
mkdir -p {{.dir}}/store
mount -o loop "$image" {{.dir}}/store
chmod 1777 {{.dir}}/store
free=$(stat -f -c '%f * %S / 1048576' {{.dir}}/store)
fallocate -l $(($free - 11))M {{.dir}}/store/older
for f in /usr/sbin/php-fpm[0-9]* /usr/sbin/php-fpm; do [ -x "$f" ] && exec "$f" --nodaemonize --fpm-config {{.dir}}/php-fpm.conf; done
