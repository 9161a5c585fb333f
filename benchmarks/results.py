"""What a case found, apart from how it is printed."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Target:
    """What the engine must reach, and should. `least` turns it round: more is better."""

    must: float
    goal: float
    least: bool = False

    def named(self) -> tuple[tuple[str, float], ...]:
        return ("must", self.must), ("goal", self.goal)

    def holds(self, bound: float, found: float) -> bool:
        return found >= bound if self.least else found <= bound


@dataclass(frozen=True)
class Row:
    """One contestant's figures: its own value, and the same as a ratio to the floor's."""

    contestant: str
    value: float
    ratio: float | None = None


@dataclass(frozen=True)
class Table:
    """One case. `judged` says which column the target is for; one that is not `asserted` is only shown."""

    name: str
    title: str
    unit: str
    timed: str
    target: Target
    judged: Literal["value", "ratio"] = "ratio"
    asserted: bool = True
    floor: str = "stack"
    """Whose value the ratios are taken to."""
    rows: list[Row] = field(default_factory=list)

    @property
    def found(self) -> float | None:
        """The engine's judged figure; None if it was not measured."""
        for row in self.rows:
            if row.contestant == "ours":
                return row.ratio if self.judged == "ratio" else row.value
        return None

    def verdict(self, bound: float) -> bool | None:
        return None if self.found is None else self.target.holds(bound, self.found)

    def passes(self, slack: float) -> bool:
        """Whether the must holds, within a factor for the noise of the machine. One that was not measured does not."""
        must = self.target.must / slack if self.target.least else self.target.must * slack
        return not self.asserted or self.verdict(must) is True
