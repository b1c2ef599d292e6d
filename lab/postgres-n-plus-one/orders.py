"""orders.py each|join: shows two hundred orders with the names of those who made them."""
import random
import sys

import pg
import web

first = pg.Connection()
for text in """CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL)
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL REFERENCES customers, note text)
INSERT INTO customers SELECT n, md5(n::text) FROM generate_series(1, 20000) n
INSERT INTO orders SELECT n, 1 + n * 7919 % 20000, 'order ' || n FROM generate_series(1, 50000) n
ANALYZE""".splitlines():
    first.query(text)
first.close()


def text(row, column):
    """A column of a row as the server sends it: a number of columns, and each with its length before it."""
    at = 2
    for _ in range(column):
        at += 4 + int.from_bytes(row[at:at + 4], "big")
    return row[at + 4:at + 4 + int.from_bytes(row[at:at + 4], "big")]


def work():
    last = random.randrange(200, 50001)
    if sys.argv[1] == "join":
        rows = pg.query("SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer "
                        f"WHERE o.id BETWEEN {last - 199} AND {last}")
        lines = [text(r, 0) + b" " + text(r, 1) for r in rows]
    else:
        lines = []
        for r in pg.query(f"SELECT id, customer FROM orders WHERE id BETWEEN {last - 199} AND {last}"):
            customer = pg.query("SELECT name FROM customers WHERE id = " + text(r, 1).decode())[0]
            lines.append(text(r, 0) + b" " + text(customer, 0))
    return b"\n".join(lines)


web.serve(8000, work)
