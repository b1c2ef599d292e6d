"""Shows how many pieces of an article are in stock; asks MariaDB on any connection of a pool of sixty."""
import random
import threading

import MySQLdb

import web


def connect():
    return MySQLdb.connect(host="127.0.0.1", user="root", db="shop", autocommit=True)


pool = [connect() for _ in range(60)]
lock = threading.Lock()


def take():
    with lock:
        return pool.pop(random.randrange(len(pool)))


def work():
    connection = take()
    try:
        cursor = connection.cursor()
        cursor.execute("SELECT n FROM stock WHERE id = %s", (random.randint(1, 300000),))
        return b"%d pieces\n" % cursor.fetchone()[0]
    except MySQLdb.OperationalError as e:
        connection = connect()
        raise RuntimeError(f"MariaDB: {e}") from e
    finally:
        with lock:
            pool.append(connection)


web.serve(8000, work)
