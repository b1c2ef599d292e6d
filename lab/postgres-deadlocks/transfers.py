# Moves money between two of ten accounts, in one transaction.
import random
import sys

import pg
import web

ordered = sys.argv[1] == "sorted"


def transfer():
    accounts = random.sample(range(10), 2)
    if ordered:
        accounts.sort()
    try:
        pg.query("BEGIN")
        for account in accounts:
            pg.query(f"UPDATE accounts SET money = money + 1 WHERE id = {account}")
        pg.query("COMMIT")
    except RuntimeError:
        pg.query("ROLLBACK")
        raise
    return b"moved\n"


pg.query("CREATE TABLE accounts (id int PRIMARY KEY, money int)")
pg.query("INSERT INTO accounts SELECT n, 0 FROM generate_series(0, 9) n")
web.serve(8000, transfer)
