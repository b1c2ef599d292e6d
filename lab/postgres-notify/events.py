"""Stores an event for each request: events.py yes|no, whether a trigger tells whoever listens."""
import sys
import threading

import pg
import web

setup = pg.Connection()
setup.query("CREATE TABLE events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text)")
if sys.argv[1] == "yes":
    setup.query("CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_notify(''events'', NEW.id::text); RETURN NEW; END'")
    setup.query("CREATE TRIGGER tell AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION tell()")
setup.query("LISTEN events")


def listen():
    while setup.file.read1(65536):
        pass


threading.Thread(target=listen, daemon=True).start()


def store():
    pg.query("INSERT INTO events (body) VALUES ('something happened')")
    return b"stored\n"


web.serve(8000, store)
