#!/bin/sh
# Rendered by the lab. In a mount namespace of its own, so that only this
# PHP-FPM asks these name servers.
set -e
mount --bind {{.dir}}/resolv.conf /etc/resolv.conf
exec "$(command -v php-fpm8.2 || command -v php-fpm)" --nodaemonize --fpm-config {{.dir}}/php-fpm.conf
