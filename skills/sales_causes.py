"""What explains a fall of net sales from one month to the next. Money is in whole yuan, so that all sums are exact.

Net sales are what was sold less what was refunded. For each product the fall is split into four parts that add up:

    stock-outs   what more was lost on days without stock (priced at the rate of the days with stock)
    returns      what more was refunded
    demand       fewer units wanted (sold, or lost to a stock-out), at the old price
    price        the units wanted now, at a lower price
"""

from __future__ import annotations

import calendar
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from fsm_agent import SkillContext, skill

CauseKind = Literal["stock-outs", "returns", "demand", "price"]
KINDS: tuple[CauseKind, ...] = ("stock-outs", "returns", "demand", "price")


class SalesDataError(ValueError):
    """The tables do not allow the question to be answered. The message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Sale:
    """What was sold of a product in a month, before returns."""

    month: str
    product: str
    units: int
    price: int


@dataclass(frozen=True, slots=True)
class Stock:
    """On how many days of a month a product was out of stock, and what was left at its end."""

    month: str
    product: str
    days_out: int
    closing_stock: int


@dataclass(frozen=True, slots=True)
class Return:
    """What came back of a product in a month for one reason, and what was refunded."""

    month: str
    product: str
    reason: str
    units: int
    refund: int


@dataclass(frozen=True, slots=True)
class Line:
    """The net sales of one product, month by month."""

    name: str
    values: list[int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A month against the one before it. `fall` is `before - now`, and negative where sales rose."""

    month: str
    month_before: str
    before: int
    now: int
    fall: int
    fall_share: float
    months: list[str]
    totals: list[int]
    products: list[Line]


@dataclass(frozen=True, slots=True)
class Cause:
    """One part of the fall. `share` is its share of the whole fall, and negative where it held sales up."""

    kind: CauseKind
    product: str
    amount: int
    share: float
    detail: str


@dataclass(frozen=True, slots=True)
class Causes:
    """The fall, its parts over all products, and the parts of each product, the largest first."""

    fall: int
    totals: dict[CauseKind, int]
    causes: list[Cause]


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for returns whose refunds rose: from `before` to `now`, and its share of all such rises."""

    product: str
    reason: str
    units: int
    before: int
    now: int
    rise: int
    share: float


@dataclass(frozen=True, slots=True)
class Position:
    """A product in one month."""

    units: int
    price: int
    refunds: int
    days: int
    days_out: int

    @property
    def rate(self) -> float:
        """Units sold a day, on the days with stock."""
        return self.units / (self.days - self.days_out) if self.days_out < self.days else 0.0

    def lost(self, other_rate: float) -> int:
        """Units not sold for want of stock; by the other month's rate where there was none on any day."""
        return round((self.rate if self.days_out < self.days else other_rate) * self.days_out)


@skill(idempotent=True, max_retries=0)
def compare_months(sales: list[Sale], returns: list[Return], month: str, context: SkillContext) -> Comparison:
    """Net sales of a month (as 2026-09) against those of the month before, and of all months up to it.

    Raises SalesDataError if there is no such month, or none before it.
    """
    found = compare(sales, returns, month)
    context.log("compared", before=found.before, now=found.now, change=f"{-found.fall_share:+.1%}")
    return found


@skill(idempotent=True, max_retries=0)
def find_causes(
    sales: list[Sale],
    stock: list[Stock],
    returns: list[Return],
    month: str,
    month_before: str,
    context: SkillContext,
) -> Causes:
    """Split the fall of net sales between two months into stock-outs, returns, demand and price, by product.

    Raises SalesDataError if a product was sold in a month for which its stock is not known, or is there twice.
    """
    found = take_apart(positions(sales, stock, returns, month_before), positions(sales, stock, returns, month))
    for cause in found.causes[:2]:
        context.log(f"{cause.kind} of {cause.product}", yuan=cause.amount, share=f"{cause.share:.0%}")
    return found


@skill(idempotent=True, max_retries=0)
def find_return_reasons(returns: list[Return], month: str, month_before: str) -> list[Reason]:
    """The reasons, by product, whose refunds rose from one month to the next; the largest rise first."""
    refunds: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: {month_before: 0, month: 0})
    units: dict[tuple[str, str], int] = defaultdict(int)
    for each in returns:
        key = (each.product, each.reason)
        if each.month in (month, month_before):
            refunds[key][each.month] += each.refund
        if each.month == month:
            units[key] += each.units
    rises = {key: paid[month] - paid[month_before] for key, paid in refunds.items() if paid[month] > paid[month_before]}
    in_all = sum(rises.values())
    return [
        Reason(*key, units[key], refunds[key][month_before], refunds[key][month], rise, _share(rise, in_all))
        for key, rise in sorted(rises.items(), key=lambda item: (-item[1], item[0]))
    ]


def compare(sales: Sequence[Sale], returns: Sequence[Return], month: str) -> Comparison:
    """A month against the one before it, by what was sold less what was refunded."""
    before = month_before(month)
    months = sorted({sale.month for sale in sales if sale.month <= month})
    if months[-2:] != [before, month]:
        raise SalesDataError(f"the sales table must have {before} and {month}; {_range_of({s.month for s in sales})}")
    net: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(months, 0))
    for sale in sales:
        if sale.month <= month:
            net[sale.product][sale.month] += sale.units * sale.price
    for each in returns:
        if each.month in months:
            net[each.product][each.month] -= each.refund
    totals = [sum(values[at] for values in net.values()) for at in months]
    fall = totals[-2] - totals[-1]
    return Comparison(
        month=month,
        month_before=before,
        before=totals[-2],
        now=totals[-1],
        fall=fall,
        fall_share=_share(fall, totals[-2]),
        months=months,
        totals=totals,
        products=[Line(name, list(values.values())) for name, values in sorted(net.items())],
    )


def month_before(month: str) -> str:
    """The month before one such as 2026-09."""
    if not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", month):
        raise SalesDataError(f"{month!r} is no month: write it as 2026-09")
    year, number = int(month[:4]), int(month[5:])
    return f"{year:04}-{number - 1:02}" if number > 1 else f"{year - 1:04}-12"


def take_apart(before: Mapping[str, Position], now: Mapping[str, Position]) -> Causes:
    """The parts of the fall between two months, product by product; the same products must be in both."""
    parts = [
        (kind, product, amount, _detail(kind, before[product], now[product]))
        for product in before
        for kind, amount in split_fall(before[product], now[product]).items()
        if amount
    ]
    fall = sum(amount for _, _, amount, _ in parts)
    causes = [Cause(kind, product, amount, _share(amount, fall), detail) for kind, product, amount, detail in parts]
    totals = {kind: sum(cause.amount for cause in causes if cause.kind == kind) for kind in KINDS}
    return Causes(fall, totals, sorted(causes, key=lambda cause: -cause.amount))


def positions(
    sales: Sequence[Sale], stock: Sequence[Stock], returns: Sequence[Return], month: str
) -> dict[str, Position]:
    """Every product of the tables in one month; one that was not on sale has no units and no price."""
    sold = _by_product((sale for sale in sales if sale.month == month), "sales", month)
    stocked = _by_product((each for each in stock if each.month == month), "stock", month)
    days = calendar.monthrange(int(month[:4]), int(month[5:]))[1]
    found = {}
    for product in sorted({sale.product for sale in sales} | {each.product for each in returns}):
        sale, level = sold.get(product), stocked.get(product)
        if sale is not None and level is None:
            raise SalesDataError(f"the stock of {product!r} in {month} is not known: add its row to the stock table")
        days_out = level.days_out if level else 0
        if not 0 <= days_out <= days:
            raise SalesDataError(f"{product!r} was out of stock on {days_out} days of {month}: correct the stock table")
        refunds = sum(each.refund for each in returns if (each.month, each.product) == (month, product))
        found[product] = Position(sale.units if sale else 0, sale.price if sale else 0, refunds, days, days_out)
    return found


def split_fall(before: Position, now: Position) -> Mapping[CauseKind, int]:
    """The parts of one product's fall. They add up to it: `wanted × price` is what was sold plus what was lost."""
    lost_before, lost_now = before.lost(now.rate), now.lost(before.rate)
    price_before, price_now = before.price or now.price, now.price or before.price
    wanted_before, wanted_now = before.units + lost_before, now.units + lost_now
    return {
        "stock-outs": lost_now * price_now - lost_before * price_before,
        "returns": now.refunds - before.refunds,
        "demand": (wanted_before - wanted_now) * price_before,
        "price": wanted_now * (price_before - price_now),
    }


def _detail(kind: CauseKind, before: Position, now: Position) -> str:
    lost_before, lost_now = before.lost(now.rate), now.lost(before.rate)
    if kind == "stock-outs":
        days = f"{now.days_out} of {now.days} days, {before.days_out} the month before"
        return f"no stock on {days}; about {lost_now} units lost"
    if kind == "returns":
        return f"refunds of ¥{now.refunds:,}, ¥{before.refunds:,} the month before"
    if kind == "demand":
        return f"{now.units + lost_now} units wanted, {before.units + lost_before} the month before"
    return f"at ¥{now.price:,}, ¥{before.price:,} the month before"


Entry = TypeVar("Entry", Sale, Stock)


def _by_product(entries: Iterable[Entry], table: str, month: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for entry in entries:
        if entry.product in found:
            raise SalesDataError(f"the {table} table has {entry.product!r} in {month} twice: keep one row")
        found[entry.product] = entry
    return found


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _range_of(months: Collection[str]) -> str:
    return f"it has {min(months)} to {max(months)}" if months else "it is empty"
