#!/bin/sh
# A file system of its own for the spool: app.sh IMAGE FEATURES. In a mount namespace of its own, so that it goes with the service.
set -e
truncate -s 256M "$1"
mkfs.ext4 -q -F -O '^metadata_csum,dir_index' -N 100000 "$1"
mkdir spool
mount -o loop "$1" spool
/usr/bin/python3 app.py fill
umount spool
tune2fs -O "$2" "$1" >/dev/null
mount -o loop "$1" spool
exec /usr/bin/python3 app.py serve
