"""bill.py copy|own: bills a day's deliveries by their customers' tariffs, again and again; each delivery with a deep copy of its tariff, or with the tariff itself."""
import copy
import sys
import time

ZONES = [{"zone": z, "rates": {weight: {"net": weight * 0.3 + z, "vat": 0.19} for weight in range(1, 21)}} for z in range(12)]
TARIFFS = {customer: {"name": f"customer {customer}", "discount": customer % 7 / 100, "zones": copy.deepcopy(ZONES)} for customer in range(50)}


def price(tariff, delivery):
    rate = tariff["zones"][delivery["zone"]]["rates"][delivery["weight"]]
    return round(rate["net"] * (1 + rate["vat"]) * (1 - tariff["discount"]), 2)


def tariff_of(customer):
    tariff = TARIFFS[customer]
    return copy.deepcopy(tariff) if sys.argv[1] == "copy" else tariff


def bill(deliveries):
    return sum(price(tariff_of(d["customer"]), d) for d in deliveries)


deliveries = [{"customer": n % 50, "zone": n % 12, "weight": n % 20 + 1} for n in range(1000)]
number = 0
while True:
    total = bill(deliveries)
    number += len(deliveries)
    with open("billed", "a") as f:
        f.write(f"{time.time():.3f} {number} {total:.2f}\n")
