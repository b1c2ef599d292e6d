"""The back office: an analyst's transaction reads the archive and stays open; a migration waits for it, and two reports wait for the migration."""
import socket
import threading
import time

import pg


def ask(*queries):
    c = pg.Connection()
    for query in queries:
        c.query(query)
    time.sleep(3600)


setup = pg.Connection()
setup.query("CREATE TABLE archive AS SELECT n AS id, md5(n::text) AS body FROM generate_series(1, 1000) n")
setup.query("CREATE TABLE products AS SELECT n AS id, md5(n::text) AS name FROM generate_series(1, 10000) n")
setup.query("CREATE UNIQUE INDEX ON products (id)")
setup.query("VACUUM ANALYZE products")
for queries in (
    ["BEGIN", "SELECT count(*) FROM archive"],
    ["ALTER TABLE archive ADD COLUMN year int"],
    ["SELECT max(id) FROM archive"],
    ["SELECT min(id) FROM archive"],
):
    threading.Thread(target=ask, args=queries).start()
    time.sleep(0.3)
ready = socket.create_server(("127.0.0.1", 8200))
time.sleep(3600)
