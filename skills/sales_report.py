"""Reports in Markdown on a month's sales. Whichever way a plan ends, it writes the one file that it was told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from fsm_agent import skill

SMALL = 0.05
"""A part of the fall below this share of it is summed up with the other small ones."""
MOST_STEPS = 3
KIND_WORDS = {
    "stock-outs": "Stock-outs: sold out while people wanted more",
    "returns": "Returns: more was refunded",
    "demand": "Demand: fewer units were wanted",
    "price": "Price: sold for less",
}
NEXT_STEPS = {
    "stock-outs": "Restock **{product}**, and find out why it ran out",
    "returns": "Look into the returns of **{product}**",
    "demand": "Ask why fewer people want **{product}**",
    "price": "Check that the lower price of **{product}** is wanted",
}
METHOD = """\
Net sales are what was sold less what was refunded, in whole yuan. What a stock-out cost is an estimate: on the days
without stock a product would have sold at the rate of that month's other days (of the other month's days, where there
was no stock at all). Returns are exact. What is left of the fall is demand (units wanted, at the old price) and price
(units wanted now, at the change of price). The four parts add up to the fall."""


@dataclass(frozen=True, slots=True)
class Change:
    """A month against the one before it."""

    month: str
    month_before: str
    before: int
    now: int
    fall: int
    fall_share: float


@dataclass(frozen=True, slots=True)
class FallPart:
    """One part of the fall, with its share of the whole."""

    kind: str
    product: str
    amount: int
    share: float
    detail: str


@dataclass(frozen=True, slots=True)
class FallParts:
    """The whole fall, its parts over all products, and the parts of each product, the largest first."""

    fall: int
    totals: dict[str, int]
    causes: list[FallPart]


@dataclass(frozen=True, slots=True)
class RisenReason:
    """A reason for returns whose refunds rose, with its share of all such rises."""

    product: str
    reason: str
    units: int
    before: int
    now: int
    rise: int
    share: float


class Written(TypedDict):
    """The file that was written, its size, and the report in one sentence."""

    file: str
    bytes: int
    summary: str


@skill(idempotent=True, retry_on=OSError)
def write_causes_report(
    file: Path, region: str, change: Change, parts: FallParts, reasons: list[RisenReason], chart: Path | None = None
) -> Written:
    """Write why sales fell: the causes by their share of the fall, the reasons for returns, the method, next steps."""
    text = causes_report(file, region, change, parts, reasons, chart)
    return _write(file, fall_sentence(region, change, parts), text)


@skill(idempotent=True, retry_on=OSError)
def write_steady_report(file: Path, region: str, change: Change, chart: Path | None = None) -> Written:
    """Write that sales did not fall, so that there are no causes to look for."""
    rise = -change.fall
    summary = (
        f"Net sales in {region} did not fall: ¥{change.now:,} in {change.month} after ¥{change.before:,} in "
        f"{change.month_before}, {_change(rise, change.before)}."
    )
    return _write(file, summary, _page(f"Sales in {region}, {change.month}", [summary, *_picture(file, chart)]))


@skill(idempotent=True, retry_on=OSError)
def write_missing_data_report(file: Path, region: str, month: str, problems: dict[str, str | None]) -> Written:
    """Write which tables could not be read (by name), and what to do about each."""
    missing = {name: message for name, message in problems.items() if message}
    summary = f"Why sales in {region} changed in {month} cannot be said: {_and(sorted(missing))} could not be read."
    what = [f"- **{name}**: {_one_line(message)}" for name, message in sorted(missing.items())]
    steps = ["## What to do", "Put the data in order as said above, and run the plan again."]
    return _write(file, summary, _page(f"Sales in {region}, {month}: no answer", [summary, "\n".join(what), *steps]))


def fall_sentence(region: str, change: Change, parts: FallParts) -> str:
    """The fall, and what made up most of it, in one sentence."""
    large = _large(parts)
    named = [f"{cause.kind} of {cause.product} ({cause.share:.0%})" for cause in large[:2]]
    causes = f", through {_and(named)}" if named else ""
    return f"Net sales in {region} fell by ¥{change.fall:,} ({change.fall_share:.1%}) in {change.month}{causes}."


def causes_report(
    file: Path, region: str, change: Change, parts: FallParts, reasons: Sequence[RisenReason], chart: Path | None
) -> str:
    """The text of the report on a fall."""
    blocks = [
        fall_sentence(region, change, parts),
        _table(
            ["", change.month_before, change.month, "change"],
            [["net sales", _yuan(change.before), _yuan(change.now), _change(-change.fall, change.before)]],
        ),
        *_picture(file, chart),
        "## The fall, taken apart",
        _table(["part", "yuan", "share of the fall"], _total_rows(parts)),
        "## Causes, the largest first",
        _table(["", "cause", "product", "yuan", "share", "in numbers"], _cause_rows(parts)),
    ]
    if reasons:
        heads = ["product", "reason", "units", f"refunds {change.month_before}", f"{change.month}", "share of the rise"]
        blocks += ["## Why more was returned", _table(heads, _reason_rows(reasons))]
    if steps := [_next_step(cause, reasons) for cause in _large(parts)[:MOST_STEPS]]:
        blocks += ["## What to do next", "\n".join(f"{place}. {step}" for place, step in enumerate(steps, 1))]
    return _page(f"Why sales in {region} fell in {change.month}", [*blocks, "## How this was computed", METHOD])


def _total_rows(parts: FallParts) -> Iterator[list[str]]:
    for kind, amount in parts.totals.items():
        yield [KIND_WORDS[kind], _yuan(amount), _percent(amount, parts.fall)]
    yield ["**All**", f"**{_yuan(parts.fall)}**", f"**{_percent(parts.fall, parts.fall)}**"]


def _large(parts: FallParts) -> list[FallPart]:
    return [cause for cause in parts.causes if cause.share >= SMALL]


def _cause_rows(parts: FallParts) -> Iterator[list[str]]:
    large = [cause for cause in parts.causes if abs(cause.share) >= SMALL]
    for place, cause in enumerate(large, 1):
        numbers = [_yuan(cause.amount), f"{cause.share:.1%}"]
        yield [str(place), cause.kind, cause.product, *numbers, cause.detail]
    small = [cause for cause in parts.causes if abs(cause.share) < SMALL]
    if small:
        rest = sum(cause.amount for cause in small)
        yield ["", "the rest", f"{len(small)} small parts", _yuan(rest), _percent(rest, parts.fall), ""]


def _reason_rows(reasons: Sequence[RisenReason]) -> Iterator[list[str]]:
    for each in reasons:
        numbers = [str(each.units), _yuan(each.before), _yuan(each.now), f"{each.share:.1%}"]
        yield [each.product, each.reason, *numbers]


def _next_step(cause: FallPart, reasons: Sequence[RisenReason]) -> str:
    step = f"{NEXT_STEPS[cause.kind].format(product=cause.product)}: {cause.detail}"
    main = next((each for each in reasons if cause.kind == "returns" and each.product == cause.product), None)
    return f"{step}; the reason most given is “{main.reason}”." if main else f"{step}."


def _picture(file: Path, chart: Path | None) -> list[str]:
    """The chart, by its path from the report's folder where it lies there."""
    if chart is None:
        return []
    shown = chart.name if chart.parent == file.parent else chart.resolve().as_uri()
    return [f"![Monthly net sales by product]({shown})"]


def _table(heads: Sequence[str], rows: Iterator[list[str]] | list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, cells))} |" for cells in lines)


def _cell(text: str) -> str:
    return _one_line(text).replace("|", "\\|")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _yuan(amount: int) -> str:
    return f"{'-' if amount < 0 else ''}¥{abs(amount):,}"


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _change(rise: int, before: int) -> str:
    return f"{rise / before:+.1%}" if before else "new"


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _page(title: str, blocks: Sequence[str]) -> str:
    return "\n\n".join([f"# {title}", *blocks]) + "\n"


def _write(file: Path, summary: str, text: str) -> Written:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")
    return {"file": str(file), "bytes": file.stat().st_size, "summary": summary}
