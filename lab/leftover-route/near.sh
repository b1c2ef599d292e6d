#!/bin/sh
# near.sh ROUTE: lays the standby line of 20 Mbit/s; with a word for ROUTE what goes to the users goes over it.
set -e
ip link add backup0 type veth peer name backup0 netns "$(cat far.pid)"
ip address add 10.77.8.2/24 dev backup0
ip link set backup0 up
tc qdisc add dev backup0 root tbf rate 20mbit burst 16kb latency 100ms
until [ -e far.ready ]; do sleep 0.05; done
if [ -n "$1" ]; then
    ip route add 10.77.0.1/32 via 10.77.8.1 dev backup0 src 10.77.0.2
fi
