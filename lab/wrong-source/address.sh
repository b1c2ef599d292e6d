#!/bin/sh
# address.sh SOURCE: the host's second address, for the new site, and the network's route with SOURCE as the address to speak from.
set -e
ip address add 10.77.0.7/24 dev eth0
ip route replace 10.77.0.0/24 dev eth0 proto static src "$1"
ip route show >routes
