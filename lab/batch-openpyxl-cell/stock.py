"""stock.py cells|rows: reads the supplier's list of articles out of a workbook, again and again; says how long it took."""
import sys
import time

import openpyxl

COLUMNS = 8


def make(name):
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("stock")
    for n in range(400):
        sheet.append([n, f"Article {n}", n % 90, n * 1.25, "EUR", f"{n:08d}", n % 3, "DE"])
    book.save(name)


def by_cells(sheet):
    total = 0
    for row in range(1, 401):
        values = [sheet.cell(row=row, column=column).value for column in range(1, COLUMNS + 1)]
        total += values[2]
    return total


def by_rows(sheet):
    return sum(values[2] for values in sheet.iter_rows(values_only=True))


make("stock.xlsx")
read = {"cells": by_cells, "rows": by_rows}[sys.argv[1]]
while True:
    began = time.monotonic()
    book = openpyxl.load_workbook("stock.xlsx", read_only=True)
    total = read(book["stock"])
    book.close()
    print(f"{total} pieces in 400 rows, {time.monotonic() - began:.2f} s", flush=True)
