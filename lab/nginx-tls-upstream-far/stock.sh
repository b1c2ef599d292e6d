#!/bin/sh
# Makes a key and a certificate for this run, then becomes the stock service's nginx.
set -eu
PATH=$PATH:/usr/sbin
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=stock.example
exec nginx -p "$1" -e "$1/stock-start.log" -c "$1/stock.conf"
