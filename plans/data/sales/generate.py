"""Writes the three tables of this folder: a made-up maker of household goods, four regions, twelve months.

The numbers are drawn once with a fixed seed; the same seed gives the same files. Two things happened in East China in
the last month, and nothing else: the robot vacuum ran out of stock, and a leaking filter seal brought air purifiers
back. Run it from anywhere: `python plans/data/sales/generate.py`.
"""

from __future__ import annotations

import calendar
import csv
from dataclasses import dataclass
from pathlib import Path
from random import Random

SEED = 20260930
MONTHS = [f"2025-{month:02}" for month in (10, 11, 12)] + [f"2026-{month:02}" for month in range(1, 10)]
SEASON = [1.00, 1.38, 1.06, 0.97, 0.80, 0.96, 0.99, 1.01, 1.24, 1.00, 1.01, 1.00]
SALE_MONTHS = {"2025-11", "2026-06"}
REGIONS = {"East China": 1.0, "North China": 0.78, "South China": 0.88, "Southwest China": 0.46}
REASONS = {"changed mind": 0.016, "damaged in transit": 0.008, "defective": 0.005}

OUT_OF_STOCK = {("2026-09", "East China", "Robot Vacuum R2"): 14}
DEFECT = {("2026-09", "East China", "Air Purifier A1"): ("filter seal leaks", 0.19)}


@dataclass(frozen=True)
class Product:
    """A product, its price in yuan, and what East China buys of it in an ordinary month."""

    name: str
    price: int
    units: int


PRODUCTS = [
    Product("Air Purifier A1", 1299, 520),
    Product("Desk Fan F4", 199, 1450),
    Product("Electric Kettle K3", 129, 1900),
    Product("Rice Cooker C5", 399, 980),
    Product("Robot Vacuum R2", 1499, 390),
]


def main() -> None:
    """Draw all numbers in one fixed order, and write them."""
    random = Random(SEED)  # noqa: S311 - data for an example, not a secret
    sales: list[list[object]] = []
    stock: list[list[object]] = []
    returns: list[list[object]] = []
    for month, season in zip(MONTHS, SEASON, strict=True):
        days = calendar.monthrange(int(month[:4]), int(month[5:]))[1]
        for region, size in REGIONS.items():
            for product in PRODUCTS:
                key = (month, region, product.name)
                price = round(product.price * 0.92) if month in SALE_MONTHS else product.price
                wanted = product.units * size * season * random.gauss(1, 0.015)
                days_out = OUT_OF_STOCK.get(key, 1 if random.random() < 0.06 else 0)
                units = round(wanted * (days - days_out) / days)
                sales.append([*key, units, price])
                stock.append([*key, 0 if days_out > 1 else round(wanted * random.uniform(0.3, 0.6)), days_out])
                reasons = REASONS | dict([DEFECT[key]] if key in DEFECT else [])
                for reason, share in reasons.items():
                    if count := round(units * share * random.uniform(0.8, 1.2)):
                        returns.append([*key, reason, count, count * price])
    _write("sales.csv", ["units", "price"], sales)
    _write("stock.csv", ["closing_stock", "days_out"], stock)
    _write("returns.csv", ["reason", "units", "refund"], returns)


def _write(name: str, columns: list[str], rows: list[list[object]]) -> None:
    with Path(__file__).with_name(name).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["month", "region", "product", *columns])
        table.writerows(rows)


if __name__ == "__main__":
    main()
