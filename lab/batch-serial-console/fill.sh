#!/bin/sh
# An archive of 600 small files with long names.
set -e
mkdir -p home/customers/documents restored
cd home/customers/documents
for i in $(seq 600); do echo "invoice $i" >"invoice-of-the-year-2026-number-$i.txt"; done
cd ../../..
tar -cf home.tar home
