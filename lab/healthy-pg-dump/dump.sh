#!/bin/sh
# The nightly dump of the shop, one after the other.
while :; do
    pg_dump -h 127.0.0.1 -U postgres -t orders postgres | nice -n 10 gzip -9 >dump.sql.gz
done
