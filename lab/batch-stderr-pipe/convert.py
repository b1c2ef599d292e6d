"""Converts a picture, and warns of each of its two thousand tiles."""
import sys

for tile in range(2000):
    sys.stderr.write(f"warning: tile {tile}: profile is out of date, taken as it is\n")
total = sum(i * i for i in range(300_000))
