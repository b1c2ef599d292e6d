#!/bin/sh
# copy.sh FILE HOW: copies FILE to the backup host, again and again; says how long each took.
while :; do
    began=$(date +%s%N)
    # shellcheck disable=SC2086 # HOW may be no word at all
    rsync --whole-file --ignore-times $2 "$1" rsync://10.77.0.1/backup/
    echo "16 MB in $((($(date +%s%N) - began) / 1000000)) ms"
done
