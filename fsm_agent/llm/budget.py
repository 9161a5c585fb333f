"""What asking models may cost, and what it has cost: plain data, no I/O, no clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self

from fsm_agent.errors import UsageError
from fsm_agent.llm.protocol import Usage

Bound = Literal["calls", "tokens", "money", "seconds"]
BOUNDS: tuple[Bound, ...] = ("calls", "tokens", "money", "seconds")
"""In the order in which they are looked at."""

MILLION = 1_000_000
_DIGITS = 12
"""Money is rounded here after each step, so that sums do not drift away from what is written."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of what a run may spend on models; None is no bound."""

    calls: int | None = None
    """Answers: a request that was made again counts with the answer that it led to."""
    tokens: int | None = None
    """Of questions and answers together."""
    money: float | None = None
    """In the currency of the price table."""
    seconds: float | None = None
    """Of waiting for answers."""

    def __post_init__(self) -> None:
        for name in BOUNDS:
            _check(getattr(self, name), f"the budget's {name}", whole=name in ("calls", "tokens"), optional=True)

    def to_json(self) -> dict[str, Any]:
        """The bounds that there are."""
        return {name: value for name in BOUNDS if (value := getattr(self, name)) is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Of what `to_json` gave. Raises UsageError."""
        return cls(**_known(data, BOUNDS, "a budget"))


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens of a model cost."""

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        for name in ("prompt", "completion"):
            _check(getattr(self, name), f"the price of {name} tokens")

    def of(self, usage: Usage) -> float:
        """What this many tokens cost."""
        parts = usage.prompt_tokens * self.prompt, usage.completion_tokens * self.completion
        return round(sum(parts) / MILLION, _DIGITS)


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by model. A name that ends in `*` stands for all that begin so; the longest that fits counts."""

    prices: Mapping[str, Price] = field(default_factory=dict)

    def price(self, *models: str) -> Price | None:
        """The price of a model, by the first of its names that is known (as asked for, as the server calls it)."""
        for model in models:
            fitting = [name for name in self.prices if name == model or _begins(model, name)]
            if fitting:
                return self.prices[max(fitting, key=lambda name: (name == model, len(name)))]
        return None

    def to_json(self) -> dict[str, Any]:
        """By model: the prices of a million tokens."""
        return {name: {"prompt": price.prompt, "completion": price.completion} for name, price in self.prices.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Of what `to_json` gave, or a person wrote. Raises UsageError."""
        prices = {}
        for name, price in data.items():
            parts = _known(price, ("prompt", "completion"), f"the price of {name!r}")
            if len(parts) < 2:
                raise UsageError(f"the price of {name!r} has `prompt` and `completion`, for a million tokens each")
            prices[name] = Price(**parts)
        return cls(prices)


@dataclass(frozen=True, slots=True)
class NextCall:
    """What is known of a call before it is made: at most this much."""

    tokens: int = 0
    money: float | None = 0.0
    """None: the model has no price."""

    @classmethod
    def of(cls, prompt_tokens: int, max_tokens: int | None, price: Price | None) -> Self:
        """Of the tokens of its question, and the most of its answer where that is bounded."""
        most = Usage(prompt_tokens, max_tokens or 0)
        return cls(most.total, price.of(most) if price else None)


@dataclass(frozen=True, slots=True)
class Passed:
    """The bound that a call would pass."""

    bound: Bound
    spent: float
    most: float
    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent. It adds up by making a new one."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0
    unpriced: int = 0
    """Calls of models without a price: their money is not known, and not in `money`."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            _check(getattr(self, entry.name), f"what was spent of {entry.name}", whole=entry.type == "int")

    def plus(self, usage: Usage | None, seconds: float, price: Price | None = None) -> Self:
        """With one more call. One that failed has no usage: it counts as a call, with its time."""
        return type(self)(
            self.calls + 1,
            self.tokens + (usage.total if usage else 0),
            round(self.money + (price.of(usage) if usage and price else 0.0), _DIGITS),
            round(self.seconds + seconds, _DIGITS),
            self.unpriced + (usage is not None and price is None),
        )

    def passes(self, budget: Budget, call: NextCall = NextCall()) -> Passed | None:
        """The first bound that this call would pass; None if it may be made.

        What a call needs is known in part only, so a bound that is used up exactly lets no further one through.
        """
        if budget.money is not None and (call.money is None or self.unpriced):
            why = "the budget has a bound for money, and a model without a price is asked: what that costs is not known"
            return Passed("money", self.money, budget.money, why)
        needs = {"calls": 1, "tokens": call.tokens, "money": call.money or 0.0, "seconds": 0.0}
        for name in BOUNDS:
            most, spent = getattr(budget, name), getattr(self, name)
            if most is not None and (spent + needs[name] > most or (spent >= most and name != "calls")):
                need = f", and the next call may need {needs[name]:,g}" if needs[name] else ""
                return Passed(name, spent, most, f"the budget of {name} is {most:,g}: {spent:,g} are spent{need}")
        return None

    def to_json(self) -> dict[str, Any]:
        """All of it, as plain data."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Of what `to_json` gave. Raises UsageError."""
        return cls(**_known(data, [entry.name for entry in fields(cls)], "what was spent"))


def _begins(model: str, name: str) -> bool:
    return name.endswith("*") and model.startswith(name[:-1])


def _known(data: object, names: object, what: str) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise UsageError(f"{what} is a mapping")
    allowed = list(names)  # type: ignore[call-overload]
    unknown = [key for key in data if key not in allowed]
    if unknown:
        raise UsageError(f"{what} has no {unknown[0]!r}", hint=f"there are {', '.join(allowed)}")
    return dict(data)


def _check(value: object, what: str, *, whole: bool = False, optional: bool = False) -> None:
    if value is None and optional:
        return
    number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:  # type: ignore[arg-type,operator]
        raise UsageError(f"{what} must be a {'whole ' if whole else ''}number of at least 0")
