"""Changes the row, sends a mail (which takes its time), then commits; again and again."""
import sys
import time

import pg

idle = float(sys.argv[1])
job = pg.Connection()
while True:
    job.query("BEGIN")
    job.query("UPDATE stock SET sold = sold + 1 WHERE id = 1")
    time.sleep(idle)
    job.query("COMMIT")
    time.sleep(0.1)
