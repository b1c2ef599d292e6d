#!/bin/sh
# Makes a copy of the database on 5432 and follows it on 5433, for reports: standby.sh FOLDER FEEDBACK
set -e
for bin in /usr/lib/postgresql/*/bin; do PATH=$bin:$PATH; done
as() { exec setpriv --reuid postgres --regid postgres --init-groups "$@"; }
install -d -o postgres -g postgres -m 700 "$1/standby"
# The port is open a moment before the database answers.
(as sh -c 'until pg_isready -q -h 127.0.0.1; do sleep 0.1; done')
(as pg_basebackup -h 127.0.0.1 -U postgres -D "$1/standby" -R -X stream -c fast --no-sync)
as postgres -D "$1/standby" -p 5433 -c listen_addresses=127.0.0.1 -c unix_socket_directories="$1/standby" \
    -c max_standby_streaming_delay=0 -c hot_standby_feedback="$2" -c wal_receiver_status_interval=1s
