"""list.py FILE: writes a list of products as JSON, 250 KB."""
import json
import random
import sys

random.seed(1)
words = ["".join(random.choice("abcdefghiklmnoprstu") for _ in range(random.randrange(3, 9))) for _ in range(300)]
products = []
while len(products) < 1700:
    products.append({"articleNumber": random.randrange(1000000), "description": " ".join(random.choices(words, k=4)), "available": random.random() < 0.9, "priceInEuro": random.randrange(100) + 0.99, "warehouse": random.choice(["north", "south"])})
with open(sys.argv[1], "w") as f:
    json.dump(products, f, indent=1)
