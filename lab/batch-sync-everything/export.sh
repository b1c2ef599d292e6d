#!/bin/sh
# export.sh DIRECTORY: writes 48 MB, again and again; nobody waits for it.
while :; do
    dd if=/dev/urandom of="$1/export" bs=1M count=48 conv=notrunc 2>/dev/null
    sleep 0.2
done
