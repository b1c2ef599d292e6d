CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE TABLE parts (id int PRIMARY KEY, name text NOT NULL, price int NOT NULL);
INSERT INTO parts
SELECT i, 'part ' || md5(i::text) || ' for model ' || md5((i % 977)::text), i % 9000 FROM generate_series(1, 60000) i;
{{.index}}
ANALYZE parts;
