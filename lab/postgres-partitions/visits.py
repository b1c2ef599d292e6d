"""Says when a customer last came: visits.py all|month. Visits are kept in a partition for each day of two years; all asks without a day, month with the last thirty."""
import random
import sys

import pg
import web

which = " AND day > '2026-11-01'" if sys.argv[1] == "month" else ""
setup = pg.Connection()
setup.query("CREATE TABLE visits (day date NOT NULL, customer int NOT NULL, page text) PARTITION BY RANGE (day)")
setup.query("CREATE INDEX ON visits (customer, day)")
setup.query("""DO $$ BEGIN FOR i IN 0..729 LOOP
    EXECUTE format('CREATE TABLE visits_%s PARTITION OF visits FOR VALUES FROM (%L) TO (%L)', i, date '2024-12-01' + i, date '2024-12-02' + i);
    END LOOP; END $$""")
setup.query("INSERT INTO visits SELECT date '2024-12-01' + i % 730, i % 1000, 'shoes' FROM generate_series(1, 73000) i")
setup.query("ANALYZE visits")
setup.close()


def last():
    rows = pg.query(f"SELECT max(day) FROM visits WHERE customer = {random.randrange(1000)}" + which)
    return b"%d line\n" % len(rows)


web.serve(8000, last)
