CREATE DATABASE shop;
USE shop;
CREATE TABLE articles (id INT PRIMARY KEY, body TEXT);
INSERT INTO articles SELECT seq, REPEAT(MD5(seq), 60) FROM seq_1_to_40000;
SELECT SUM(LENGTH(body)) FROM articles;
