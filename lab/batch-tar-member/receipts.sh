#!/bin/sh
# receipts.sh each|once: takes four hundred receipts out of the archive, again and again; says how many it has and since when.
set -e
while :; do
    began=$(date +%s%N)
    n=0
    if [ "$1" = each ]; then
        while read -r name; do
            tar -xzf archive.tgz -C out "$name"
            n=$((n + 1))
            [ $((n % 10)) -gt 0 ] || echo "$n receipts in $((($(date +%s%N) - began) / 1000000)) ms"
        done <wanted
    else
        tar -xzf archive.tgz -C out -T wanted
        echo "400 receipts in $((($(date +%s%N) - began) / 1000000)) ms"
    fi
done
