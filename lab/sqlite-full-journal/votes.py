"""Counts votes, each in a transaction of its own, on the service's one connection to SQLite: votes.py FILE DELETE|WAL FULL|NORMAL."""
import sqlite3
import sys
import threading
import time

import web

lock = threading.Lock()
db = sqlite3.connect(sys.argv[1], isolation_level=None, check_same_thread=False)
db.execute("PRAGMA journal_mode=" + sys.argv[2])
db.execute("PRAGMA synchronous=" + sys.argv[3])
db.execute("CREATE TABLE votes (at REAL, song INTEGER)")


def work():
    with lock:
        db.execute("INSERT INTO votes VALUES (?, 7)", (time.time(),))
    return b"thanks\n"


web.serve(8000, work)
