"""A line chart of monthly sales as an SVG file, made by hand: no library is needed, and any browser shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from pathlib import Path
from typing import TypedDict

from fsm_agent import skill

WIDTH, HEIGHT = 900, 470
LEFT, RIGHT, TOP, BOTTOM = 84, 704, 92, 400
LABEL_GAP = 17
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#6a3d9a", "#444444")
"""Told apart by people who are colour-blind too (after Okabe and Ito)."""
STYLE = (
    "text{font-family:'Segoe UI',Helvetica,Arial,sans-serif;font-size:12px;fill:#444}"
    ".title{font-size:19px;font-weight:600;fill:#111}.sub{font-size:13px;fill:#666}"
    ".grid{stroke:#e4e4e4}.axis{stroke:#888}.line{fill:none;stroke-width:2.2;stroke-linejoin:round}"
    ".name{font-weight:600}"
)
MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One line: a name, and a value for each month."""

    name: str
    values: list[int]


class ChartFile(TypedDict):
    """The file that was written, and its size."""

    file: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Scale:
    """Where values and months are drawn."""

    low: int
    high: int
    step: int
    months: int

    def x(self, place: int) -> float:
        """The column of a month."""
        return LEFT + (RIGHT - LEFT) * (place + 0.5) / self.months

    def y(self, value: float) -> float:
        """The height of a value."""
        return BOTTOM - (BOTTOM - TOP) * (value - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> range:
        """The values that the axis names."""
        return range(self.low, self.high + 1, self.step)


@skill(idempotent=True, retry_on=OSError)
def draw_sales_chart(file: Path, title: str, subtitle: str, months: list[str], lines: list[ChartLine]) -> ChartFile:
    """Draw one line for each product over the months (as 2026-09), and mark the last month. Writes an SVG file.

    Raises ValueError if there is nothing to draw, or a line has not one value for each month.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(chart_of(title, subtitle, months, lines), encoding="utf-8", newline="\n")
    return {"file": str(file), "bytes": file.stat().st_size}


def chart_of(title: str, subtitle: str, months: Sequence[str], lines: Sequence[ChartLine]) -> str:
    """The chart as SVG."""
    if not months or not lines:
        raise ValueError("there is nothing to draw: give at least one month and one line")
    for line in lines:
        if len(line.values) != len(months):
            raise ValueError(f"the line {line.name!r} has {len(line.values)} values for {len(months)} months")
    scale = scale_of([value for line in lines for value in line.values], len(months))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text class="title" x="{LEFT}" y="36">{escape(title)}</text>',
        f'<text class="sub" x="{LEFT}" y="58">{escape(subtitle)}</text>',
        *_last_month(scale),
        *_value_axis(scale),
        *_month_axis(scale, months),
        *_lines(scale, lines),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def scale_of(values: Sequence[int], months: int) -> Scale:
    """An axis from a round number to a round number, through 0, in about five round steps."""
    low, high = min(0, *values), max(0, *values)
    rough = max(high - low, 5) / 5
    unit = 10 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    bottom, top = floor(low / step) * step, ceil(high / step) * step
    return Scale(bottom, max(top, bottom + step), step, months)


def spread_labels(heights: Sequence[float]) -> list[float]:
    """Where to write names next to the ends of lines, so that none covers another; in the given order."""
    order = sorted(range(len(heights)), key=lambda place: heights[place])
    placed = list(heights)
    for above, below in pairwise(order):
        placed[below] = max(placed[below], placed[above] + LABEL_GAP)
    excess = placed[order[-1]] - BOTTOM
    if excess > 0:
        placed[order[-1]] -= excess
        for above, below in zip(order[-2::-1], order[:0:-1], strict=True):
            placed[above] = min(placed[above], placed[below] - LABEL_GAP)
    return placed


def _last_month(scale: Scale) -> Iterator[str]:
    width = (RIGHT - LEFT) / scale.months
    x = scale.x(scale.months - 1) - width / 2
    yield f'<rect x="{x:.1f}" y="{TOP}" width="{width:.1f}" height="{BOTTOM - TOP}" fill="#fdf1dc"/>'


def _value_axis(scale: Scale) -> Iterator[str]:
    for value in scale.ticks:
        y = scale.y(value)
        name = "axis" if value == 0 else "grid"
        yield f'<line class="{name}" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">{value / 1000:,g}</text>'
    middle = (TOP + BOTTOM) / 2
    yield (
        f'<text x="24" y="{middle}" text-anchor="middle" transform="rotate(-90 24 {middle})">'
        "net sales, thousand yuan a month</text>"
    )


def _month_axis(scale: Scale, months: Sequence[str]) -> Iterator[str]:
    for place, month in enumerate(months):
        x, name = scale.x(place), MONTH_NAMES[int(month[5:7]) - 1]
        yield f'<text x="{x:.1f}" y="{BOTTOM + 20}" text-anchor="middle">{name}</text>'
        if place == 0 or month[:4] != months[place - 1][:4]:
            yield f'<text class="name" x="{x:.1f}" y="{BOTTOM + 38}" text-anchor="middle">{escape(month[:4])}</text>'


def _lines(scale: Scale, lines: Sequence[ChartLine]) -> Iterator[str]:
    labels = spread_labels([scale.y(line.values[-1]) for line in lines])
    for place, (line, label) in enumerate(zip(lines, labels, strict=True)):
        colour, name = COLOURS[place % len(COLOURS)], escape(line.name)
        points = " ".join(f"{scale.x(at):.1f},{scale.y(value):.1f}" for at, value in enumerate(line.values))
        end_x, end_y = scale.x(scale.months - 1), scale.y(line.values[-1])
        yield f'<polyline class="line" stroke="{colour}" points="{points}"/>'
        yield f'<circle cx="{end_x:.1f}" cy="{end_y:.1f}" r="4" fill="{colour}"/>'
        yield f'<line x1="{end_x + 6:.1f}" y1="{end_y:.1f}" x2="{RIGHT + 8}" y2="{label:.1f}" stroke="{colour}"/>'
        yield f'<text class="name" x="{RIGHT + 14}" y="{label + 4:.1f}" style="fill:{colour}">{name}</text>'
