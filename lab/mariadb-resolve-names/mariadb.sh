#!/bin/sh
# Makes a database in a new folder and serves it on 10.77.0.2:3306.
set -e
mount --bind resolv.conf /etc/resolv.conf
data=$1/db
install -d -o mysql -g mysql -m 700 "$data"
mariadb-install-db --no-defaults --user=mysql --datadir="$data" --auth-root-authentication-method=normal --skip-test-db >/dev/null
exec mariadbd --no-defaults --user=mysql --datadir="$data" --bind-address=10.77.0.2 --port=3306 --socket="$data/mariadb.sock" \
    --innodb-flush-log-at-trx-commit=0 --max-connections=200 --max-connect-errors=1000000000 {{.resolve}}
