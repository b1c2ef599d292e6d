#!/bin/sh
# Makes an archive of six thousand receipts, and a list of the four hundred that are wanted.
set -e
mkdir -p in out
awk 'BEGIN { srand(1); for (i = 0; i < 6000; i++) { f = "in/receipt-" i; for (j = 0; j < 100; j++) printf "%d lamps, %d euro, %d chairs\n", rand() * 99, rand() * 999, rand() * 9 >f; close(f) } }'
tar -czf archive.tgz -C in .
rm -r in
awk 'BEGIN { for (i = 0; i < 400; i++) print "./receipt-" i * 15 }' >wanted
