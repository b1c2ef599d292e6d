#!/bin/sh
# entry.sh OWNER: a container for one test. Its files are a layer of its own over the image's.
set -e
mount -t overlay overlay -o lowerdir=image,upperdir=box/upper,workdir=box/work box/root
if [ "$1" != 33:33 ]; then chown -R 33:33 box/root/srv; fi
head -c 1000 box/root/srv/7/fileaab >/dev/null
