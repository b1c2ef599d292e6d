#!/bin/sh
# Ten thousand products, and a user who may read them from this network.
exec mariadb --no-defaults -S "$1/db/mariadb.sock" -u root -e "
CREATE DATABASE shop;
USE shop;
CREATE TABLE products (id INT PRIMARY KEY, name VARCHAR(64));
INSERT INTO products SELECT seq, MD5(seq) FROM seq_1_to_10000;
CREATE USER 'shop'@'10.77.0.%' IDENTIFIED BY 'shop';
GRANT SELECT ON shop.* TO 'shop'@'10.77.0.%';"
