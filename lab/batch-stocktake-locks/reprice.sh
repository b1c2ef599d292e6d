#!/bin/sh
# Changes two thousand prices, one statement each, again and again; says how long each two hundred took.
while ! [ -e ready ]; do sleep 0.05; done
{
    for i in $(seq 2000); do
        echo "UPDATE products SET price = price + 0.01 WHERE id = $i;"
        [ $((i % 200)) != 0 ] || echo "SELECT clock_timestamp(), '200 prices';"
    done
} >prices.sql
while :; do psql -h 127.0.0.1 -U postgres -qAt -f prices.sql; done
