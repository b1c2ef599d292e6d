"""Writes a page of 300 KB in words."""
import os
import random
import sys

random.seed(1)
words = ["".join(random.choice("abcdefghiklmnoprstu") for _ in range(random.randrange(2, 10))) for _ in range(3000)]
text = ""
while len(text) < 300000:
    text += " ".join(random.choices(words, k=500)) + "\n"
with open(sys.argv[1] + ".new", "w") as f:
    f.write(text)
os.rename(sys.argv[1] + ".new", sys.argv[1])
