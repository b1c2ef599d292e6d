"""A page that reads three of thirty settings from the database."""
import pg
import web

pg.query("CREATE TABLE settings AS SELECT 'setting' || i AS name, i AS value FROM generate_series(1, 30) i")
pg.query("ANALYZE settings")


def work():
    values = [pg.query(f"SELECT value FROM settings WHERE name = 'setting{i}'") for i in (3, 14, 27)]
    return b"%d settings\n" % len(values)


web.serve(8000, work)
