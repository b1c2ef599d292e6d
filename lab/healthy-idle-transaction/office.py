"""Changes the archive in a transaction, and goes to lunch."""
import time

import pg

c = pg.Connection()
c.query("CREATE TABLE archive AS SELECT i AS id, 'paid' AS state FROM generate_series(1, 20000) i")
c.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
c.query("LOCK TABLE archive")
c.query("UPDATE archive SET state = 'filed'")
while True:
    time.sleep(60)
