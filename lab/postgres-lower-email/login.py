"""Looks up the user for every request, by an address in whatever case: login.py WHAT, which the index is on."""
import random
import sys

import pg
import web

first = pg.Connection()
first.query("CREATE TABLE users AS SELECT n AS id, 'User.' || n || '@Example.org' AS email, md5(n::text) AS hash FROM generate_series(1, 300000) n")
first.query(f"CREATE INDEX users_by_email ON users ({sys.argv[1]})")
first.query("VACUUM ANALYZE users")
first.close()


def work():
    rows = pg.query(f"SELECT id, hash FROM users WHERE lower(email) = lower('USER.{random.randrange(1, 300000)}@example.org')")
    return b"%d users\n" % len(rows)


web.serve(8000, work)
