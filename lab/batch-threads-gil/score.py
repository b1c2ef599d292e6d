"""Scores customers, and says each second how many."""
import random
import time
from concurrent.futures import {{.pool}} as Pool


def score(customer):
    """How much a customer will spend next year, from what the last 20,000 purchases of such customers say."""
    chance = random.Random(customer)
    level = trend = 0.0
    for _ in range(20000):
        bought = chance.random() * 100
        level, trend = 0.9 * level + 0.1 * bought + trend, 0.95 * trend + 0.05 * (bought - level) / 50
    return customer, round(level + 365 * trend, 2)


def main():
    with Pool(8) as pool:
        began, done, customer = time.monotonic(), 0, 0
        while True:
            for _ in pool.map(score, range(customer, customer + 100)):
                done += 1
            customer += 100
            if time.monotonic() - began >= 1:
                print(f"{done / (time.monotonic() - began):.0f} customers/s", flush=True)
                began, done = time.monotonic(), 0


if __name__ == "__main__":
    main()
