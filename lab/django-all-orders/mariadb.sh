#!/bin/sh
# Makes a database "shop" in a new folder, and serves it on 127.0.0.1:3306.
set -e
data=$1/shop-db
mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db --datadir="$data" --user=mysql >/dev/null
cat >"$data.sql" <<EOF
CREATE DATABASE IF NOT EXISTS shop CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS shop@'127.0.0.1' IDENTIFIED BY 'shop';
GRANT ALL ON shop.* TO shop@'127.0.0.1';
EOF
exec mariadbd --no-defaults --datadir="$data" --user=mysql --bind-address=127.0.0.1 --port=3306 --skip-name-resolve \
    --socket="$data/mariadb.sock" --pid-file="$data/mariadb.pid" --init-file="$data.sql"
