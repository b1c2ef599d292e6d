#!/bin/sh
# 20,000 sales of nearly as many articles.
exec mariadb --no-defaults -h 127.0.0.1 -u root -e "
CREATE DATABASE shop;
USE shop;
CREATE TABLE sales (id INT PRIMARY KEY, article INT NOT NULL, price INT NOT NULL);
INSERT INTO sales SELECT seq, (seq * 7919) MOD 15000, seq MOD 97 FROM seq_1_to_20000;"
