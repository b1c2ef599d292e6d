"""The articles of a shop: 2,000, each with a description of about 60 KB."""
import pg

pg.query("CREATE TABLE articles (id integer PRIMARY KEY, shelf integer, name varchar, price numeric, description text)")
pg.query(
    "INSERT INTO articles SELECT n, n / 40, 'Article ' || n, n * 1.5,"
    " (SELECT string_agg(md5((n * 1000 + k)::text) || ' is what it says about this article. ', '') FROM generate_series(1, 900) k)"
    " FROM generate_series(0, 1999) n"
)
pg.query("CREATE INDEX ON articles (shelf)")
pg.query("VACUUM ANALYZE articles")
