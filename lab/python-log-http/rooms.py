"""rooms.py LEVEL: shows free rooms; sends the lines of its log from this level on to the collector."""
import logging
import logging.handlers
import sys
import time

import web

log = logging.getLogger("rooms")
log.setLevel(sys.argv[1])
log.addHandler(logging.handlers.HTTPHandler("10.77.0.1:9000", "/lines", method="POST"))


def work():
    time.sleep(0.01)
    log.info("shown: %d rooms", 17)
    return b"17 rooms\n"


web.serve(8000, work)
