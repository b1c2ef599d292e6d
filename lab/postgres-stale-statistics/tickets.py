"""Shows the ten oldest open tickets."""
import pg
import web

first = pg.Connection()
for text in """CREATE TABLE tickets (id serial PRIMARY KEY, state text NOT NULL, note text)
CREATE INDEX ON tickets (state)
INSERT INTO tickets (state, note) SELECT 'open', md5(n::text) FROM generate_series(1, 300) n
ANALYZE tickets
UPDATE tickets SET state = 'done'
INSERT INTO tickets (state, note) SELECT 'done', md5(n::text) FROM generate_series(1, 300000) n
INSERT INTO tickets (state, note) SELECT 'open', md5(n::text) FROM generate_series(1, 50) n
{{.last}}""".splitlines():
    first.query(text)
first.close()


def work():
    rows = pg.query("SELECT id, note FROM tickets WHERE state = 'open' ORDER BY id LIMIT 10")
    return b"%d tickets\n" % len(rows)


web.serve(8000, work)
