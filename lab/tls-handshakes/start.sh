#!/bin/sh
# Makes a key and a certificate for this run, then becomes nginx.
set -eu
PATH=$PATH:/usr/sbin
openssl req -x509 -newkey rsa:4096 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=upstream
exec nginx -p "$1" -e "$1/nginx-start.log" -c "$1/nginx.conf"
