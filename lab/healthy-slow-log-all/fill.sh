#!/bin/sh
# 20,000 articles; from now on each query of a new session is logged as a slow one.
exec mariadb --no-defaults -h 127.0.0.1 -u root -e "
CREATE DATABASE shop;
USE shop;
CREATE TABLE stock (id INT PRIMARY KEY, note VARCHAR(100) NOT NULL);
INSERT INTO stock SELECT seq, MD5(seq) FROM seq_1_to_20000;
SET GLOBAL slow_query_log_file = 'slow.log', slow_query_log = 1, long_query_time = 0;"
