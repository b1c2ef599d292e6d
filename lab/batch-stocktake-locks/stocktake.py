"""Takes stock: stocktake.py LOCK. Looks at all products in one transaction, and holds it open while the warehouse counts. LOCK: FOR UPDATE, or nothing."""
import sys
import time

import pg

db = pg.Connection()
db.query("CREATE TABLE products (id int PRIMARY KEY, price numeric NOT NULL, stock int NOT NULL)")
db.query("INSERT INTO products SELECT i, 10, 5 FROM generate_series(1, 2000) i")
open("ready", "w").close()
while True:
    db.query("BEGIN")
    db.query("SELECT id, stock FROM products ORDER BY id " + sys.argv[1])
    time.sleep(0.9)  # somebody counts
    db.query("COMMIT")
    time.sleep(0.02)
