#!/bin/sh
# Rendered by the lab. Starts the report twice a second, as cron does every minute, whatever became of the ones before.
while :; do
    {{.lock}} timeout --foreground 10 /usr/bin/python3 report.py &
    sleep 0.5
done
