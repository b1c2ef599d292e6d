#!/bin/sh
# A session that looks at the stock and is then left alone.
(
    echo "START TRANSACTION;"
    echo "SELECT COUNT(*) FROM shop.stock; {{.commit}}"
    sleep 100000
) | mariadb --no-defaults --unbuffered -h 127.0.0.1 -u root
