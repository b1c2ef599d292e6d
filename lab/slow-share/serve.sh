#!/bin/sh
# Mounts the share in a mount namespace of its own, and serves from there.
set -e
mkdir -p {{.dir}}/far {{.dir}}/www
head -c 20000 /dev/urandom >{{.dir}}/far/picture.jpg
bindfs -f -o direct_io --read-rate={{.rate}} {{.dir}}/far {{.dir}}/www &
until mountpoint -q {{.dir}}/www; do sleep 0.05; done
exec nginx -c {{.dir}}/nginx.conf
