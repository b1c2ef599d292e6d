#!/bin/sh
# search.sh INDEX MEGABYTES: with so much forgotten in the tmpfs of its own mount namespace.
set -e
mkdir exports
mount -t tmpfs -o size=200m exports exports
dd if=/dev/zero of=exports/old bs=1M "count=$2" 2>/dev/null
exec /usr/bin/python3 search.py "$1"
