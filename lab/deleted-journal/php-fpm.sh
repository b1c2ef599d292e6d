#!/bin/sh
# Rendered by the lab. In a mount namespace of its own, so that the file
# system goes when the processes do.
set -e
mkdir -p {{.dir}}/uploads
mount -t tmpfs -o size=48m,mode=1777 uploads {{.dir}}/uploads
/usr/bin/python3 journal.py 60 {{.told}} >journal.out 2>&1 &
while ! [ -e rotated ]; do sleep 0.05; done
exec "$(command -v php-fpm8.2 || command -v php-fpm)" --nodaemonize --fpm-config {{.dir}}/php-fpm.conf
