#!/bin/sh
# A table of 20 orders for each of 400 customers.
{
    echo "CREATE DATABASE shop; USE shop;"
    for n in $(seq 0 399); do
        echo "CREATE TABLE orders_$n (id INT PRIMARY KEY, note VARCHAR(64)) AS SELECT seq AS id, MD5(seq) AS note FROM seq_1_to_20;"
    done
} | mariadb --no-defaults -h 127.0.0.1 -u root
