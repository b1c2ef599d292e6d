"""Adds up orders for each customer, again and again; says how long each round took."""
import collections
import time


def orders():
    for n in range(150000):
        yield f"{n % 5000};lamp-{n % 977};{n % 9 + 1};{n % 90}.50"


def bill():
    sums = collections.defaultdict(list)
    for line in orders():
        customer, article, pieces, price = line.split(";")
        sums[customer].append((article, int(pieces) * float(price)))
    return {customer: sum(amount for _, amount in lines) for customer, lines in sums.items()}


while True:
    began = time.monotonic()
    bill()
    print(f"150,000 orders in {(time.monotonic() - began) * 1000:.0f} ms", flush=True)
