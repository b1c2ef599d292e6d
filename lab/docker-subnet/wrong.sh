#!/bin/sh
# A bridge for containers, with the addresses that it takes unless told otherwise; none runs.
set -e
ip link add docker0 type bridge
ip address add {{.subnet}} dev docker0
ip link set docker0 up
# The company's own network, beyond the wire; a bridge with the same addresses is nearer.
ip route append 172.17.0.0/16 dev eth0
