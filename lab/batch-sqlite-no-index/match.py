"""match.py INDEX: finds the customer of each order by the address; with an index on it if INDEX is yes."""
import random
import sqlite3
import sys
import time

CUSTOMERS = 30000
db = sqlite3.connect("customers.db")
db.execute("CREATE TABLE IF NOT EXISTS customers (id INTEGER PRIMARY KEY, email TEXT NOT NULL, name TEXT NOT NULL)")
db.executemany("INSERT INTO customers (email, name) VALUES (?, ?)", ((f"customer-{n}@example.org", f"Customer {n}") for n in range(CUSTOMERS)))
if sys.argv[1] == "yes":
    db.execute("CREATE INDEX customers_email ON customers (email)")
db.commit()
matched, told = 0, time.monotonic()
while True:
    order = f"customer-{random.randrange(CUSTOMERS)}@example.org"
    db.execute("SELECT id, name FROM customers WHERE email = ?", (order,)).fetchall()
    matched += 1
    if time.monotonic() - told >= 1:
        print(f"{matched} orders a second", flush=True)
        matched, told = 0, time.monotonic()
