#!/bin/sh
# Ten thousand articles; and what somebody switched on to look for a query, in March.
exec mariadb --no-defaults -h 127.0.0.1 -u root -e "
CREATE DATABASE shop;
USE shop;
CREATE TABLE articles (id INT PRIMARY KEY, name VARCHAR(64), description TEXT);
INSERT INTO articles SELECT seq, CONCAT('Article ', seq), REPEAT(MD5(seq), 10) FROM seq_1_to_10000;
SET GLOBAL log_output = 'TABLE';
SET GLOBAL general_log = {{.log}};"
