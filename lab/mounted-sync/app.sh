#!/bin/sh
# A file system of its own for the audit log: app.sh IMAGE OPTIONS. In a mount namespace of its own, so that it goes with the service.
set -e
truncate -s 64M "$1"
mkfs.ext4 -q -F "$1"
mkdir audit
mount -o "loop,$2" "$1" audit
exec /usr/bin/python3 app.py audit/audit.log
