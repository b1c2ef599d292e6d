"""Lists a tenant's newest invoices, of which the database shows each tenant his own: invoices.py VOLATILE|STABLE, how the policy's function is declared."""
import random
import sys
import threading

import pg
import web

setup = pg.Connection()
for statement in (
    "CREATE TABLE tenants (id int PRIMARY KEY, key text UNIQUE NOT NULL)",
    "INSERT INTO tenants SELECT i, 'key-' || i FROM generate_series(1, 1000) i",
    "CREATE TABLE invoices (id int PRIMARY KEY, tenant int NOT NULL, total numeric NOT NULL)",
    "INSERT INTO invoices SELECT i, i % 1000 + 1, i % 900 FROM generate_series(1, 10000) i",
    "CREATE INDEX invoices_tenant ON invoices (tenant)",
    "ANALYZE",
    f"CREATE FUNCTION my_tenant() RETURNS int LANGUAGE plpgsql {sys.argv[1]} AS"
    " $$ BEGIN RETURN (SELECT id FROM tenants WHERE key = current_setting('app.key')); END $$",
    "ALTER TABLE invoices ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY own ON invoices USING (tenant = my_tenant())",
    "CREATE ROLE web",
    "GRANT SELECT ON tenants, invoices TO web",
):
    setup.query(statement)
setup.close()
kept = threading.local()


def invoices():
    if not hasattr(kept, "connection"):
        kept.connection = pg.Connection()
        kept.connection.query("SET ROLE web")
    kept.connection.query(f"SET app.key = 'key-{random.randrange(1, 1001)}'")
    return b"%d invoices\n" % len(kept.connection.query("SELECT id, total FROM invoices"))


web.serve(8000, invoices)
