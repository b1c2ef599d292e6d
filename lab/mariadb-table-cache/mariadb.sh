#!/bin/sh
# Makes a database in a new folder and serves it on 127.0.0.1:3306: mariadb.sh FOLDER TABLES-KEPT-OPEN
set -e
data=$1/db
install -d -o mysql -g mysql -m 700 "$data"
mariadb-install-db --no-defaults --user=mysql --datadir="$data" --auth-root-authentication-method=normal --skip-test-db >/dev/null
exec mariadbd --no-defaults --user=mysql --datadir="$data" --bind-address=127.0.0.1 --port=3306 --socket="$data/mariadb.sock" \
    --innodb-flush-log-at-trx-commit=0 --innodb-buffer-pool-size=256M --table-open-cache="$2"
