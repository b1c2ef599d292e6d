#!/bin/sh
# Rendered by the lab. In a mount namespace of its own, so that the file
# system goes when the processes do.
set -e
mkdir -p {{.dir}}/uploads
mount -t tmpfs -o size=64m,mode=1777 uploads {{.dir}}/uploads
mount -o remount,{{.mode}} {{.dir}}/uploads
exec "$(command -v php-fpm8.2 || command -v php-fpm)" --nodaemonize --fpm-config {{.dir}}/php-fpm.conf
