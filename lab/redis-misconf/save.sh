#!/bin/sh
# Somebody tidies up; later redis is due to save. Returns when it has tried.
set -e
{{.tidy}}
redis-cli -p 6379 set begun yes
redis-cli -p 6379 bgsave
while redis-cli -p 6379 info persistence | grep -q 'rdb_bgsave_in_progress:1'; do sleep 0.05; done
