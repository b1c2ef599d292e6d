#!/bin/sh
# Makes a database in a new folder and serves it on 127.0.0.1:5432, and on a socket in there to its own user:
# postgres.sh FOLDER [SETTING=VALUE...]
set -e
for bin in /usr/lib/postgresql/*/bin; do PATH=$bin:$PATH; done
data=$1/db
shift
install -d -o postgres -g postgres -m 700 "$data"
as() { exec setpriv --reuid postgres --regid postgres --init-groups "$@"; }
(as initdb --auth-local peer --auth-host trust --username postgres --no-sync -D "$data" >/dev/null)
for setting; do
    shift
    set -- "$@" -c "$setting"
done
as postgres -D "$data" -c listen_addresses=127.0.0.1 -c unix_socket_directories="$data" "$@"
