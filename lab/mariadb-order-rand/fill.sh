#!/bin/sh
# 100,000 articles, by number.
exec mariadb --no-defaults -h 127.0.0.1 -u root -e "
CREATE DATABASE shop;
USE shop;
CREATE TABLE articles (id INT PRIMARY KEY, name VARCHAR(64) NOT NULL, price INT NOT NULL);
INSERT INTO articles SELECT seq, CONCAT('article ', MD5(seq)), seq % 1000 FROM seq_1_to_100000;"
