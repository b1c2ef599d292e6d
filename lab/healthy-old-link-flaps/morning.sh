#!/bin/sh
# The morning: the cable is loose fifteen times, then somebody pushes it in, and the visitors of the morning go.
sleep 1
for n in $(seq 15); do
    ip link set server down
    sleep 0.25
    ip link set server up
    sleep 0.1
done
sleep 3
