#!/bin/sh
# The VPN has the branch office's network; what is marked goes by the wire.
set -e
ip link add vpn0 type bridge
ip address add 10.99.0.1/30 dev vpn0
ip link set vpn0 up
ip route add 172.20.0.0/16 dev vpn0
ip route add 172.20.0.0/16 dev eth0 table 100
ip rule add fwmark 1 lookup 100
