#!/bin/sh
# A table of notes for each of a thousand customers.
{
    echo "CREATE DATABASE shop; USE shop;"
    for i in $(seq 1000); do
        echo "CREATE TABLE notes_$i (id INT PRIMARY KEY AUTO_INCREMENT, day DATE, note VARCHAR(200), KEY (day));"
        echo "INSERT INTO notes_$i VALUES (1, CURDATE(), 'call back');"
    done
} | mariadb --no-defaults -h 127.0.0.1 -u root
