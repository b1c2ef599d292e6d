#!/bin/sh
# fill.sh DISK: an archive of 40 files of 16 MB, and the backup host's copy of it (the same blocks, to spare the lab's disk).
set -e
for n in $(seq 39); do
    cp "$1/archive/0" "$1/archive/$n"
done
for n in $(seq 0 39); do
    ln "$1/archive/$n" "$1/backup/$n"
done
sync -f "$1/archive" # what is written later would disturb the job
