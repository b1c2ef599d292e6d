#!/bin/sh
exec mariadb --no-defaults -h 127.0.0.1 -u root -e "
CREATE DATABASE shop;
USE shop;
CREATE TABLE shop.stock (id INT PRIMARY KEY, n INT NOT NULL, note VARCHAR(64)) ENGINE={{.engine}};
INSERT INTO shop.stock SELECT seq, 0, MD5(seq) FROM seq_1_to_300000;"
