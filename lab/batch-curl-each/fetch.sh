#!/bin/sh
# fetch.sh COUNT: fetches the rates of one day after the other, COUNT with each curl, and says after each hundred how long they took.
mkdir -p rates
while :; do
    began=$(date +%s%N)
    seq -f 'https://10.77.0.1/rates/%g.json' 100 | xargs -n "$1" curl -sS --cacert cert.pem --remote-name-all --output-dir rates || exit 1
    echo "100 files in $((($(date +%s%N) - began) / 1000000)) ms"
done
