#!/bin/sh
# Rendered by the lab. In a mount namespace of its own, so that the file
# system goes when the processes do.
set -e
mkdir -p {{.dir}}/uploads
mount -t tmpfs -o size={{.size}},mode=1777 uploads {{.dir}}/uploads
dd if=/dev/zero of={{.dir}}/uploads/old bs=64k count=32 2>/dev/null || true
exec "$(command -v php-fpm8.2 || command -v php-fpm)" --nodaemonize --fpm-config {{.dir}}/php-fpm.conf
