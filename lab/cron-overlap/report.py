"""The sales of the year, added up by article and day: some seconds of a CPU."""
totals = {}
for n in range(12_000_000):
    key = n * 7919 % 36500
    totals[key] = totals.get(key, 0) + n % 900
print(len(totals), max(totals.values()))
