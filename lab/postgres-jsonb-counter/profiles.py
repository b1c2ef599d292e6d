"""Counts a visit to a member's page: profiles.py document|column, the counter within the member's JSON document or in a column of its own."""
import random
import sys

import pg
import web

MEMBERS = 200
SET = {
    "document": "data = jsonb_set(data, '{views}', to_jsonb((data->>'views')::int + 1))",
    "column": "views = views + 1",
}[sys.argv[1]]
setup = pg.Connection()
setup.query("CREATE TABLE members (id int PRIMARY KEY, views int NOT NULL, data jsonb NOT NULL)")
setup.query(f"""INSERT INTO members SELECT m, 0, jsonb_build_object('views', 0, 'name', 'Member ' || m, 'history',
    (SELECT jsonb_agg(md5(m::text || i::text)) FROM generate_series(1, 6000) i)) FROM generate_series(0, {MEMBERS - 1}) m""")
setup.close()


def visit():
    pg.query(f"UPDATE members SET {SET} WHERE id = {random.randrange(MEMBERS)}")
    return b"seen\n"


web.serve(8000, visit)
