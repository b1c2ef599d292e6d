"""Prices orders in a pool of two processes: pricing.py each|forked, how a worker gets the table of rates; says how many orders a second."""
import multiprocessing
import sys
import time

RATES = {"zone-%d" % n: (n * 7 % 100, n % 19, "EUR") for n in range(20_000)}


def price(order, rates):
    base, extra, _ = rates["zone-%d" % (order % 20_000)]
    return sum(base * day + extra for day in range(100))


def with_table(task):
    order, rates = task
    return price(order, rates)


def with_order(order):
    return price(order, RATES)


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        while True:
            began = time.monotonic()
            if sys.argv[1] == "each":
                n = sum(1 for _ in pool.imap_unordered(with_table, ((i, RATES) for i in range(100))))
            else:
                n = sum(1 for _ in pool.imap_unordered(with_order, range(20_000), chunksize=100))
            print("%.0f orders/s" % (n / (time.monotonic() - began)), flush=True)
