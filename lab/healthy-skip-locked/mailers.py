"""Twelve mailers: each takes a job, sends its mail while the row is locked, and deletes the job."""
import threading
import time

import pg


def mailer():
    while True:
        pg.query("BEGIN")
        rows = pg.query("SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED")
        if rows:
            time.sleep(0.5)  # the mail server of the provider takes its time
            pg.query("DELETE FROM jobs WHERE id = " + rows[0][6:].decode())
        pg.query("COMMIT")
        if not rows:
            time.sleep(0.2)


for _ in range(12):
    threading.Thread(target=mailer).start()
