#!/bin/sh
# Rendered by the lab. PHP-FPM with what the image adds to the settings.
export PHP_INI_SCAN_DIR=:{{.dir}}/conf.d
exec "$(command -v php-fpm8.2 || command -v php-fpm)" --nodaemonize --fpm-config {{.dir}}/php-fpm.conf
