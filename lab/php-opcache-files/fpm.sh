#!/bin/sh
# Starts PHP-FPM with the server's own php.ini.
for fpm in /usr/sbin/php-fpm[0-9]*; do :; done
exec "$fpm" --nodaemonize --fpm-config php-fpm.conf -c php.ini
