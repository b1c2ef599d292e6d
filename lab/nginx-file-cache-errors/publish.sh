#!/bin/sh
# Impatient readers ask for the results before they are there; then they are published.
set -e
for reader in 1 2 3; do
    curl -s -o /dev/null http://10.77.0.2/results.txt
done
mv draft.txt www/results.txt
chmod 644 www/results.txt
