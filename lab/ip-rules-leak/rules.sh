#!/bin/sh
# rules.sh N: a rule of policy routing for each of N containers that once were, as their agent left them.
awk -v n="$1" 'BEGIN { for (i = n; i > 0; i--) printf "rule add pref %d from 10.%d.%d.%d lookup 200\n", 1000 + i, 100 + i / 65536, i / 256 % 256, i % 256 }' >rules.txt
exec ip -batch rules.txt
