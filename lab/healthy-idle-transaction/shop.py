"""Shows an article."""
import random

import pg
import web

setup = pg.Connection()
setup.query("CREATE TABLE articles AS SELECT i AS id, md5(i::text) AS name FROM generate_series(1, 50000) i")
setup.query("ALTER TABLE articles ADD PRIMARY KEY (id)")
setup.query("VACUUM ANALYZE articles")
setup.close()
web.serve(8000, lambda: pg.query(f"SELECT name FROM articles WHERE id = {random.randrange(1, 50001)}")[0] + b"\n")
