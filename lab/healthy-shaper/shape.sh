#!/bin/sh
# Half a gigabit for all, four fifths of it for the site.
set -e
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 500mbit burst 256k
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 400mbit ceil 500mbit burst 256k
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 100mbit ceil 500mbit burst 256k
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip sport 80 0xffff flowid 1:10
