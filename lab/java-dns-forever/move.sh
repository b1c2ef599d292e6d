#!/bin/sh
# The price service moves: its name gets the new address, and a while later, when everybody should know, the old machine is switched off.
set -e
echo "10.77.0.12 prices.shop.example" >prices.hosts
kill -HUP "$(cat resolver.pid)"
sleep 2.5
ip address delete 10.77.0.11/32 dev eth0
