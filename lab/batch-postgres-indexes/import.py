"""Imports events into PostgreSQL, a thousand with one INSERT; import.py yes|no: with the indexes of old reports or without. Says every second how many there were."""
import sys
import time

import pg

db = pg.Connection()
db.query("CREATE TABLE events (id bigint PRIMARY KEY, at timestamptz, customer int, device uuid, kind text, amount numeric, country text, note text)")
if sys.argv[1] == "yes":
    for what in ("(at)", "(customer)", "(device)", "(kind)", "(amount)", "(country)", "(customer, at)", "(country, kind)", "(lower(note))", "(kind, amount)", "(device, at)", "(date_trunc('day', at AT TIME ZONE 'UTC'))", "USING gin (to_tsvector('simple', note))", "USING brin (at)"):
        db.query("CREATE INDEX ON events " + what)
done, said, then = 0, 0, time.monotonic()
while True:
    if done % 200000 == 0:
        db.query("TRUNCATE events")  # the next day
    db.query(
        "INSERT INTO events SELECT n, now() - n * interval '1 second', hashint4(n), md5(n::text)::uuid, 'kind ' || n % 40, random() * 1000, 'country ' || n % 190,"
        f" 'Order ' || n || ' was ' || md5(n::text) || ' and ' || md5((n + 1)::text) FROM generate_series({done + 1}, {done + 1000}) n"
    )
    done += 1000
    if time.monotonic() - then >= 1:
        print(f"{done - said} events", flush=True)
        said, then = done, time.monotonic()
