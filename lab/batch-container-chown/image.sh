#!/bin/sh
# image.sh DISK OWNER: makes an image of 1,000 files, 16 MB in all, which OWNER has.
set -e
cd "$1"
i=0
while [ $i -lt 10 ]; do
    mkdir -p image/srv/$i
    head -c 1638400 /dev/urandom | split -b 16384 -a 3 - image/srv/$i/file
    i=$((i + 1))
done
chown -R "$2" image/srv
