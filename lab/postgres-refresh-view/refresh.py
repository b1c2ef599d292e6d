"""refresh.py HOW: computes the view anew, rests for a tenth of a second, and so on."""
import sys
import time

import pg

while True:
    began = time.monotonic()
    pg.query(f"REFRESH MATERIALIZED VIEW {sys.argv[1]} sold")
    print("computed in %.1f s" % (time.monotonic() - began), flush=True)
    time.sleep(0.1)
