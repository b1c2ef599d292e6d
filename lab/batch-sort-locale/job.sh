#!/bin/sh
# job.sh make: a file of 300,000 lines, and the locale en_US.UTF-8 in the work directory; job.sh LOCALE: sorts the file by that locale, again and again.
set -e
if [ "$1" = make ]; then
    mkdir -p locales
    localedef --no-archive -i en_US -f UTF-8 locales/en_US.UTF-8
    awk 'BEGIN { srand(1); for (i = 0; i < 300000; i++) printf "customer-%06d order %09d Main Street %d\n", rand() * 20000, rand() * 1e9, rand() * 99 }' >orders
    exit
fi
export LOCPATH="$PWD/locales" LC_ALL="$1"
while :; do
    sort -u --parallel=1 -o sorted orders
    date +%s.%N >>done
done
