#!/bin/sh
# 100,000 orders of 400 bytes.
exec mariadb --no-defaults -h 127.0.0.1 -u root -e "
CREATE DATABASE shop;
USE shop;
CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, what VARCHAR(400) NOT NULL);
INSERT INTO orders (what) SELECT REPEAT(MD5(seq), 12) FROM seq_1_to_100000;"
