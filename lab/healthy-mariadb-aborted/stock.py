"""Shows how many pieces of an article are in stock; each thread keeps a connection to MariaDB."""
import random
import threading

import MySQLdb

import web

kept = threading.local()


def work():
    if not hasattr(kept, "connection"):
        kept.connection = MySQLdb.connect(host="127.0.0.1", port=3307, user="root", db="shop", autocommit=True)
    cursor = kept.connection.cursor()
    cursor.execute("SELECT n FROM stock WHERE id = %s", (random.randint(1, 300000),))
    return b"%d pieces\n" % cursor.fetchone()[0]


web.serve(8000, work)
