"""Somebody's report: took its picture of the data, and was left open."""
import time

import pg

report = pg.Connection()
report.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
report.query("SELECT count(*) FROM pg_class")
while True:
    time.sleep(60)
