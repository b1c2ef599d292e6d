#!/bin/sh
# dump.sh FILE HOW: dumps 16 MB again and again with dd, which is told HOW; says how long each took.
file=$1
while :; do
    began=$(date +%s%N)
    # shellcheck disable=SC2086 # HOW is several words
    head -c 16000000 /dev/zero | dd of="$file" iflag=fullblock status=none $2
    echo "16 MB in $((($(date +%s%N) - began) / 1000000)) ms"
done
