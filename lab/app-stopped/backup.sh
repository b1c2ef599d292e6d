#!/bin/sh
# Rendered by the lab. Copies (so it says) for so many seconds, while the service is stopped.
app=$(ss -ltnp 'sport = :8000' | sed -n 's/.*pid=\([0-9]*\).*/\1/p')
trap 'kill -CONT "$app"; exit' TERM INT
while true; do
    if [ {{.copying}} != 0 ]; then
        kill -STOP "$app"
        sleep {{.copying}}
        kill -CONT "$app"
    fi
    sleep 0.7
done
