"""Checks account numbers in a pool of two processes, so many at a time; says every second how many."""
import multiprocessing
import sys
import time


def good(number):
    digits = [int(d) for d in "%08d" % number]
    return sum(digits[::2]) * 3 + sum(digits[1::2])


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        while True:
            began, n = time.monotonic(), 0
            for _ in pool.imap_unordered(good, range(200_000), chunksize=int(sys.argv[1])):
                n += 1
                if n % 10_000 == 0:
                    print("%.0f numbers/s" % (n / (time.monotonic() - began)), flush=True)
