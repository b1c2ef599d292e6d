#!/bin/sh
# search.sh END: searches three thousand letters, again and again, with find -exec … END; says how long each search took.
set -e
mkdir -p letters
/usr/bin/python3 -c '
for n in range(3000):
    open("letters/%05d.txt" % n, "w").write("dear sir or madam, thank you\n" * 10)'
while :; do
    began=$(date +%s%N)
    find letters -name '*.txt' -exec grep -l 'your invoice' {} "$1" || true
    echo "3000 letters in $((($(date +%s%N) - began) / 1000000)) ms"
done
