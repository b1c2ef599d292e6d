#!/bin/sh
# archive.sh make: 600 invoices; archive.sh each|all: puts them into a ZIP archive, one after the other or in one go, again and again, and notes how long that took.
set -e
if [ "$1" = make ]; then
    mkdir -p invoices
    for n in $(seq 1000 1599); do head -c 60000 /dev/urandom >invoices/$n.pdf; done
    exit
fi
while :; do
    rm -f invoices.zip
    begun=$(date +%s.%N)
    if [ "$1" = each ]; then
        for f in invoices/*.pdf; do
            zip -q -0 invoices.zip "$f"
            echo "$(date +%s.%N) $f" >>progress
        done
    else
        zip -q -0 -r invoices.zip invoices
        for f in invoices/*.pdf; do echo "$(date +%s.%N) $f"; done >>progress
    fi
    echo "$begun $(date +%s.%N)" >>done
done
