#!/bin/sh
while :; do
    mariadb --no-defaults -h 127.0.0.1 -u root -e "SELECT MAX(SHA2(REPEAT(CONCAT(note, id), 12), 256)) FROM shop.stock" >/dev/null
    sleep 0.3
done
