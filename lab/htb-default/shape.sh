#!/bin/sh
# shape.sh PORT: a gigabit for what comes from PORT, 8 Mbit/s for all the rest.
set -e
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 1gbit burst 256k
tc class add dev eth0 parent 1: classid 1:20 htb rate 8mbit burst 16k
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip sport "$1" 0xffff flowid 1:10
