#!/bin/sh
# 5,000 articles of fifty suppliers.
exec mariadb --no-defaults -h 127.0.0.1 -u root -e "
CREATE DATABASE shop;
USE shop;
CREATE TABLE stock (id INT PRIMARY KEY, supplier INT NOT NULL, price INT NOT NULL, sold INT NOT NULL);
INSERT INTO stock SELECT seq, seq MOD 50, 100, 0 FROM seq_1_to_5000;
{{.index}}"
