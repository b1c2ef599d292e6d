#!/bin/sh
# reload.sh SECONDS: reloads Apache every so often, as a careless management of its configuration does.
while :; do
    sleep "$1"
    kill -USR1 "$(cat apache.pid)"
done
