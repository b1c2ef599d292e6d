"""Eighteen workers that asked the database once, and wait for something to do. Listens when all have asked."""
import pg
import web

workers = [pg.Connection() for _ in range(18)]
for w in workers:
    w.query("SELECT 1")
web.serve(8200, lambda: b"%d idle\n" % len(workers))
