#!/bin/sh
# 200,000 customers with an index on their telephone numbers, which are text.
exec mariadb --no-defaults -h 127.0.0.1 -u root -e "
CREATE DATABASE shop;
USE shop;
CREATE TABLE customers (id INT PRIMARY KEY, phone VARCHAR(20) NOT NULL, name VARCHAR(64), INDEX (phone));
INSERT INTO customers SELECT seq, CONCAT('49170', 1000000 + seq), MD5(seq) FROM seq_1_to_200000;"
