#!/bin/sh
# 300,000 orders, ten for each customer.
exec mariadb --no-defaults -h 127.0.0.1 -u root -e "
CREATE DATABASE shop;
USE shop;
CREATE TABLE orders (id INT PRIMARY KEY, customer INT NOT NULL, note VARCHAR(64));
INSERT INTO orders SELECT seq, seq MOD 30000, MD5(seq) FROM seq_1_to_300000;
{{.index}}"
