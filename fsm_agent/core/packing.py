"""Long lists of numbers, most of which are equal to the one before: kept as value and times, value and times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby


def pack(values: Iterable[int]) -> list[int]:
    """Each value followed by how often it stands there in a row."""
    packed: list[int] = []
    for value, group in groupby(values):
        packed += (value, sum(1 for _ in group))
    return packed


def unpack(packed: Sequence[int], size: int) -> list[int]:
    """The list that was packed. Raises ValueError if it does not come to `size` values."""
    times = packed[1::2]
    if len(packed) % 2 or any(count < 1 for count in times) or sum(times) != size:
        raise ValueError(f"a packed list does not come to {size} values")
    values: list[int] = []
    for value, count in zip(packed[::2], times, strict=True):
        values += [value] * count
    return values
