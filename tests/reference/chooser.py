"""Where the random plans take their choices from: a seeded source, or hypothesis, which can shrink them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Chooser(Protocol):
    """A source of choices. The first option and the answer no are the simplest ones."""

    def chance(self, percent: int) -> bool: ...

    def integer(self, low: int, high: int) -> int: ...

    def pick(self, options: Sequence[T]) -> T: ...


class SeededChooser:
    """Choices from a `random.Random`."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def chance(self, percent: int) -> bool:
        return self._rng.randrange(100) >= 100 - percent

    def integer(self, low: int, high: int) -> int:
        return self._rng.randint(low, high)

    def pick(self, options: Sequence[T]) -> T:
        return self._rng.choice(options)


class DrawnChooser:
    """Choices drawn by hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def chance(self, percent: int) -> bool:
        return self._draw(st.integers(0, 99)) >= 100 - percent

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        return self._draw(st.sampled_from(options))


def sample(choose: Chooser, options: Sequence[T], most: int) -> list[T]:
    """Up to `most` different options, in the order of the options; at least one where there is one."""
    if not options:
        return []
    chosen = {choose.integer(0, len(options) - 1) for _ in range(choose.integer(1, most))}
    return [options[place] for place in sorted(chosen)]
