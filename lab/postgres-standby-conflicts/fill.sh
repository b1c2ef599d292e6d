#!/bin/sh
# A table of 300,000 sales, on both databases, and a small one of the tills' state; then tills report their state, and what is dead is cleaned up twice a second.
set -e
until pg_isready -q -h 127.0.0.1; do sleep 0.1; done
ask() { psql -qtA -h 127.0.0.1 -U postgres -v ON_ERROR_STOP=1 "$@"; }
if [ "$1" = fill ]; then
    ask -c "CREATE TABLE sales AS SELECT i AS id, i % 97 AS till, i % 900 AS total FROM generate_series(1, 300000) i" \
        -c "CREATE TABLE tills AS SELECT i AS id, 0 AS sold FROM generate_series(0, 96) i" -c "VACUUM ANALYZE"
    until [ "$(ask -p 5433 -c 'SELECT count(*) FROM tills' 2>&1)" = 97 ]; do sleep 0.1; done
    exit
fi
while :; do
    printf 'UPDATE tills SET sold = sold + 1 WHERE id = %d;\n' 7 11 13
    echo 'VACUUM tills;'
    sleep 0.05
done | ask
