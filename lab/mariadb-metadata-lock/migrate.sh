#!/bin/sh
# Adds a column; gives up after a second and tries again, as a careful migration does.
sleep 1
until mariadb --no-defaults -h 127.0.0.1 -u root -e "SET lock_wait_timeout = 1; ALTER TABLE shop.stock ADD COLUMN gift INT NOT NULL DEFAULT 0"; do
    sleep 0.2
done
